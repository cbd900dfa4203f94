package dev.tacho.metrics.stats;

/** Counts what a step works on, sequence by sequence, for {@link IterationDetails}. One thread; reused. */
public final class IterationCounter {
  private int contextRequests;
  private int contextTokens;
  private int generationRequests;
  private int generationTokens;

  /** Empties the counts. */
  public void reset() {
    contextRequests = 0;
    contextTokens = 0;
    generationRequests = 0;
    generationTokens = 0;
  }

  /**
   * Adds a sequence: context if it is new in the step or has no output yet, else generation.
   *
   * @param isNew true if it was not in an earlier step
   * @param scheduledTokens tokens that it computes in this step
   * @param outputTokens tokens that it has generated so far
   */
  public void add(boolean isNew, int scheduledTokens, int outputTokens) {
    if (isNew || outputTokens == 0) {
      contextRequests++;
      contextTokens += scheduledTokens;
    } else {
      generationRequests++;
      generationTokens += scheduledTokens;
    }
  }

  /**
   * The counts of a step of a text model.
   *
   * @param index number of the step
   * @param elapsedMillis time that the model took
   */
  public IterationDetails details(long index, double elapsedMillis) {
    return new IterationDetails(index, contextRequests, contextTokens, generationRequests, generationTokens,
        elapsedMillis, false, 0, 0);
  }
}
