package dev.tacho.metrics.stats;

import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.RequestId;
import org.jspecify.annotations.Nullable;

/**
 * The life of one sequence, from whose stamps its intervals come. Used by the collector's thread alone.
 *
 * <p>Arrival and pick-up are one pair of stamps, queued, scheduled and batch time another; the two are never mixed:
 * time to first token and end-to-end time use the first pair, all other intervals the second.
 */
public final class RequestTimeline {
  private static final double NANOS = 1e9;

  private final long arrivalNanos;
  private final int promptTokens;
  private final int maxTokens;
  private final int parent;
  private final int n;
  private final @Nullable String adapter;

  private long queuedNanos;
  private long waitingSinceNanos;
  private long scheduledNanos;
  private boolean scheduled;
  private long firstOutputNanos;
  private long lastOutputNanos;
  private boolean prefilling = true;
  private int generatedTokens;
  private int preemptions;
  private int cachedTokens;
  private boolean corrupted;
  private @Nullable RequestId requestId;
  private boolean stopped;
  private long stoppedNanos;

  /**
   * A sequence that was queued.
   *
   * @param queuedNanos when
   * @param arrivalNanos arrival of the request
   * @param promptTokens length of the prompt
   * @param maxTokens limit of generated tokens, 0 if none
   * @param parent number of the request that this is one of n of, 0 if it stands alone
   * @param n sequences of the request
   * @param adapter name of its adapter, or null
   */
  public RequestTimeline(long queuedNanos, long arrivalNanos, int promptTokens, int maxTokens, int parent, int n,
      @Nullable String adapter) {
    this.queuedNanos = queuedNanos;
    waitingSinceNanos = queuedNanos;
    this.arrivalNanos = arrivalNanos;
    this.promptTokens = promptTokens;
    this.maxTokens = maxTokens;
    this.parent = parent;
    this.n = n;
    this.adapter = adapter;
  }

  /** It was queued again. Once scheduled, its queue time is settled and a later stamp changes nothing. */
  public void queuedAgain(long nanos) {
    if (!scheduled) {
      queuedNanos = nanos;
      waitingSinceNanos = nanos;
    }
  }

  /** It moved into the running list; the first time counts. */
  public void scheduled(long nanos) {
    if (!scheduled) {
      scheduledNanos = nanos;
      scheduled = true;
    }
  }

  /** What its request is called. */
  public void requestId(RequestId id) {
    requestId = id;
  }

  /** What its request is called, or null. */
  public @Nullable RequestId requestId() {
    return requestId;
  }

  /** True once it has moved into the running list. */
  public boolean isScheduled() {
    return scheduled;
  }

  /** When it was queued. */
  public long queuedNanos() {
    return queuedNanos;
  }

  /** When it first moved into the running list. */
  public long scheduledNanos() {
    return scheduledNanos;
  }

  /** It lost its place and waits again. */
  public void preempted(long nanos) {
    preemptions++;
    waitingSinceNanos = nanos;
  }

  /** When it was put into the queue the last time: queued, or preempted. */
  public long waitingSinceNanos() {
    return waitingSinceNanos;
  }

  /** An output of it was computed from logits with a NaN. */
  public void corrupted() {
    corrupted = true;
  }

  /**
   * Where its prompt came from; precedes the first output, and is ignored after it.
   *
   * @param prompt length of the prompt
   * @param local tokens found in the prefix cache
   * @param external tokens that a KV connector supplied
   * @param iteration gets the sums
   */
  public void prefillStats(int prompt, int local, int external, IterationStats iteration) {
    if (prefilling) {
      iteration.promptTokens().add(prompt, local, external);
      cachedTokens = local + external;
    }
  }

  /**
   * It gave an output.
   *
   * @param tokens new tokens, may be 0
   * @param batchNanos when the output was built
   * @param pickUpNanos when the output thread took it
   * @param iteration gets the samples
   */
  public void output(int tokens, long batchNanos, long pickUpNanos, IterationStats iteration) {
    iteration.addGenerationTokens(tokens);
    generatedTokens += tokens;
    iteration.delivery((pickUpNanos - batchNanos) / NANOS);
    if (prefilling) {
      double seconds = (pickUpNanos - arrivalNanos) / NANOS;
      iteration.frontendTimes().add((queuedNanos - arrivalNanos) / NANOS);
      iteration.timesToFirstToken().add(seconds);
      iteration.longestTimeToFirstToken().observe(seconds, requestId);
      firstOutputNanos = batchNanos;
      prefilling = false;
    } else {
      double seconds = (batchNanos - lastOutputNanos) / NANOS;
      iteration.interTokenLatencies().add(seconds);
      iteration.longestInterTokenLatency().observe(seconds, requestId);
    }
    lastOutputNanos = batchNanos;
  }

  /** True if the output that came last was built at this time. */
  public boolean hasOutputAt(long batchNanos) {
    return !prefilling && lastOutputNanos == batchNanos;
  }

  /**
   * A stop string ended it in its last output; nothing that it gives after that is anybody's.
   *
   * @param pickUpNanos when the output thread took that output
   */
  public void stopped(long pickUpNanos) {
    stopped = true;
    stoppedNanos = pickUpNanos;
  }

  /** True if a stop string ended it. */
  public boolean isStopped() {
    return stopped;
  }

  /** When the output thread took the output with the stop string. */
  public long stoppedNanos() {
    return stoppedNanos;
  }

  /**
   * It ended with its last output.
   *
   * @param reason why
   * @param pickUpNanos when the output thread took that output
   */
  public FinishedRequestStats finished(FinishReason reason, long pickUpNanos) {
    double decode = (lastOutputNanos - firstOutputNanos) / NANOS;
    return new FinishedRequestStats(
        reason,
        (pickUpNanos - arrivalNanos) / NANOS,
        promptTokens,
        generatedTokens,
        maxTokens,
        cachedTokens,
        preemptions,
        (scheduledNanos - queuedNanos) / NANOS,
        (firstOutputNanos - scheduledNanos) / NANOS,
        decode,
        (lastOutputNanos - scheduledNanos) / NANOS,
        generatedTokens > 1 ? decode / (generatedTokens - 1) : 0,
        corrupted);
  }

  /** Number of the request that this is one of n of, 0 if it stands alone. */
  public int parent() {
    return parent;
  }

  /** Sequences of the request. */
  public int n() {
    return n;
  }

  /** Name of its adapter, or null. */
  public @Nullable String adapter() {
    return adapter;
  }

  /** Tokens generated so far. */
  public int generatedTokens() {
    return generatedTokens;
  }
}
