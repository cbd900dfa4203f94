package dev.tacho.metrics.stats;

import java.util.Arrays;

/**
 * Draft tokens of speculative decoding and what became of them, summed over the sequences of a step. For a diffusion
 * model the drafts are denoising steps, the draft tokens canvas positions, the accepted ones committed tokens.
 *
 * <p>The accepted tokens of a sequence never exceed the longest draft; its drafted ones may be fewer when a grammar
 * refused some. One thread.
 */
public final class SpeculationStats {
  private long[] acceptedByPosition = new long[0];
  private long[] draftedByPosition = new long[0];
  private long drafts;
  private long draftTokens;
  private long acceptedTokens;

  /** Empties the sums and sets the longest draft, in tokens. */
  public void reset(int maxDraftTokens) {
    if (acceptedByPosition.length != maxDraftTokens) {
      acceptedByPosition = new long[maxDraftTokens];
      draftedByPosition = new long[maxDraftTokens];
    } else {
      Arrays.fill(acceptedByPosition, 0);
      Arrays.fill(draftedByPosition, 0);
    }
    drafts = 0;
    draftTokens = 0;
    acceptedTokens = 0;
  }

  /**
   * Adds the draft of a sequence.
   *
   * @param drafted tokens drafted, those that a grammar refused left out
   * @param accepted tokens accepted
   * @throws IllegalArgumentException if either is negative or longer than the longest draft
   */
  public void add(int drafted, int accepted) {
    if (drafted < 0 || accepted < 0 || drafted > draftedByPosition.length || accepted > acceptedByPosition.length) {
      throw new IllegalArgumentException(drafted + " drafted and " + accepted
          + " accepted tokens: must be in [0, " + acceptedByPosition.length + "]");
    }
    drafts++;
    draftTokens += drafted;
    acceptedTokens += accepted;
    for (int i = 0; i < accepted; i++) {
      acceptedByPosition[i]++;
    }
    for (int i = 0; i < drafted; i++) {
      draftedByPosition[i]++;
    }
  }

  /** Makes the longest draft at least so long and keeps the sums. */
  public void grow(int maxDraftTokens) {
    if (maxDraftTokens > acceptedByPosition.length) {
      acceptedByPosition = Arrays.copyOf(acceptedByPosition, maxDraftTokens);
      draftedByPosition = Arrays.copyOf(draftedByPosition, maxDraftTokens);
    }
  }

  /** Adds the sums of another. */
  public void add(SpeculationStats other) {
    grow(other.acceptedByPosition.length);
    drafts += other.drafts;
    draftTokens += other.draftTokens;
    acceptedTokens += other.acceptedTokens;
    for (int i = 0; i < other.acceptedByPosition.length; i++) {
      acceptedByPosition[i] += other.acceptedByPosition[i];
      draftedByPosition[i] += other.draftedByPosition[i];
    }
  }

  /** The longest draft in tokens. */
  public int positions() {
    return acceptedByPosition.length;
  }

  /** Sequences with a draft. */
  public long drafts() {
    return drafts;
  }

  /** Tokens drafted. */
  public long draftTokens() {
    return draftTokens;
  }

  /** Tokens accepted. */
  public long acceptedTokens() {
    return acceptedTokens;
  }

  /** Drafts whose token at a position was accepted. */
  public long acceptedAt(int position) {
    return acceptedByPosition[position];
  }

  /** Drafts that had a token at a position. */
  public long draftedAt(int position) {
    return draftedByPosition[position];
  }
}
