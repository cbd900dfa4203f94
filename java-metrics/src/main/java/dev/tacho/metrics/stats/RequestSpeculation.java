package dev.tacho.metrics.stats;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Speculative decoding of one request, for its own answer. One thread. */
public final class RequestSpeculation {
  private final boolean detailed;
  private final long[] histogram;
  private final List<Integer> acceptedByStep = new ArrayList<>();
  private final List<Integer> draftedByStep = new ArrayList<>();
  private long drafted;

  /**
   * Nothing yet.
   *
   * @param maxDraftTokens the longest draft in tokens
   * @param detailed true keeps each step
   */
  public RequestSpeculation(int maxDraftTokens, boolean detailed) {
    this.histogram = new long[maxDraftTokens + 1];
    this.detailed = detailed;
  }

  /** Adds a step with a draft. */
  public void add(int draftedTokens, int acceptedTokens) {
    histogram[acceptedTokens]++;
    drafted += draftedTokens;
    if (detailed) {
      acceptedByStep.add(acceptedTokens);
      draftedByStep.add(draftedTokens);
    }
  }

  /** Steps with a draft. */
  public long steps() {
    long steps = 0;
    for (long count : histogram) {
      steps += count;
    }
    return steps;
  }

  /** Tokens accepted. */
  public long acceptedTokens() {
    long accepted = 0;
    for (int i = 0; i < histogram.length; i++) {
      accepted += i * histogram[i];
    }
    return accepted;
  }

  /** Tokens drafted. */
  public long draftedTokens() {
    return drafted;
  }

  /** The longest draft in tokens. */
  public int maxDraftTokens() {
    return histogram.length - 1;
  }

  /** Tokens that a step gave on average, the model's own included; 1 without a step. */
  public double meanAcceptanceLength() {
    return steps() == 0 ? 1 : 1 + (double) acceptedTokens() / steps();
  }

  /** Accepted per drafted token; 0 if none was drafted. */
  public double acceptanceRate() {
    return drafted == 0 ? 0 : (double) acceptedTokens() / drafted;
  }

  /** Steps by how many tokens they accepted. */
  public long[] acceptanceHistogram() {
    return histogram.clone();
  }

  /** Accepted tokens of each step, if they are kept. */
  public List<Integer> acceptedByStep() {
    return Collections.unmodifiableList(acceptedByStep);
  }

  /** Drafted tokens of each step, if they are kept. */
  public List<Integer> draftedByStep() {
    return Collections.unmodifiableList(draftedByStep);
  }
}
