package dev.tacho.engine.scheduler;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What one step computes: sequences in scheduling order, each with a number of tokens from a start position. Made and
 * reused by the scheduler; the runner reads it inside {@code launch} only, on the engine thread.
 */
public final class StepPlan {
  private long step;
  private int numSequences;
  private int numTokens;
  private @Nullable Sequence[] sequences = new @Nullable Sequence[16];
  private int[] scheduledTokens = new int[16];
  private int[] startPositions = new int[16];
  private boolean[] samples = new boolean[16];

  /** Empties the plan and gives it a number. */
  void reset(long stepNumber) {
    Arrays.fill(sequences, 0, numSequences, null);
    step = stepNumber;
    numSequences = 0;
    numTokens = 0;
  }

  /** Adds a sequence that computes {@code tokens} tokens from position {@code start}. */
  void add(Sequence sequence, int tokens, int start, boolean sample) {
    int i = numSequences;
    if (i == sequences.length) {
      sequences = Arrays.copyOf(sequences, i * 2);
      scheduledTokens = Arrays.copyOf(scheduledTokens, i * 2);
      startPositions = Arrays.copyOf(startPositions, i * 2);
      samples = Arrays.copyOf(samples, i * 2);
    }
    sequences[i] = sequence;
    scheduledTokens[i] = tokens;
    startPositions[i] = start;
    samples[i] = sample;
    numSequences = i + 1;
    numTokens += tokens;
  }

  /** The step's number, counted from 1. */
  public long step() {
    return step;
  }

  /** Sequences in the step. */
  public int numSequences() {
    return numSequences;
  }

  /** Tokens in the step. */
  public int numTokens() {
    return numTokens;
  }

  /** Sequence {@code i} in scheduling order. */
  public Sequence sequence(int i) {
    Sequence s = sequences[i];
    if (i >= numSequences || s == null) {
      throw new IndexOutOfBoundsException("sequence " + i + " of " + numSequences);
    }
    return s;
  }

  /** Tokens that sequence {@code i} computes. */
  public int scheduledTokens(int i) {
    return scheduledTokens[i];
  }

  /** Position of the first of them: tokens computed before this step. */
  public int startPosition(int i) {
    return startPositions[i];
  }

  /** True if a token is sampled after the last of them (the step reaches the sequence's end). */
  public boolean samples(int i) {
    return samples[i];
  }
}
