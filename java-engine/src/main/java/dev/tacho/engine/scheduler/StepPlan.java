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
  private int[] draftCounts = new int[16];
  private int draftStride;
  private int[] drafts = new int[0];

  /** Empties the plan and gives it a number; a sequence has {@code maxDrafts} drafts at most. */
  void reset(long stepNumber, int maxDrafts) {
    Arrays.fill(sequences, 0, numSequences, null);
    step = stepNumber;
    numSequences = 0;
    numTokens = 0;
    draftStride = maxDrafts;
  }

  /**
   * Adds a sequence that computes {@code tokens} tokens from position {@code start}, of which the last {@code
   * numDrafts} are its first drafts.
   */
  void add(Sequence sequence, int tokens, int start, boolean sample, int numDrafts) {
    int i = numSequences;
    if (i == sequences.length) {
      sequences = Arrays.copyOf(sequences, i * 2);
      scheduledTokens = Arrays.copyOf(scheduledTokens, i * 2);
      startPositions = Arrays.copyOf(startPositions, i * 2);
      samples = Arrays.copyOf(samples, i * 2);
      draftCounts = Arrays.copyOf(draftCounts, i * 2);
    }
    if (numDrafts > 0) {
      if ((i + 1) * draftStride > drafts.length) {
        drafts = Arrays.copyOf(drafts, sequences.length * draftStride);
      }
      System.arraycopy(sequence.drafts, 0, drafts, i * draftStride, numDrafts);
    }
    draftCounts[i] = numDrafts;
    sequences[i] = sequence;
    scheduledTokens[i] = tokens;
    startPositions[i] = start;
    samples[i] = sample;
    numSequences = i + 1;
    numTokens += tokens;
  }

  /** Takes a sequence out again and gives the number of its tokens. */
  int remove(Sequence sequence) {
    int at = 0;
    while (sequences[at] != sequence) {
      at++;
    }
    int tokens = scheduledTokens[at];
    int behind = numSequences - at - 1;
    System.arraycopy(sequences, at + 1, sequences, at, behind);
    System.arraycopy(scheduledTokens, at + 1, scheduledTokens, at, behind);
    System.arraycopy(startPositions, at + 1, startPositions, at, behind);
    System.arraycopy(samples, at + 1, samples, at, behind);
    System.arraycopy(draftCounts, at + 1, draftCounts, at, behind);
    int draftsBehind = Math.max(0, Math.min(behind * draftStride, drafts.length - (at + 1) * draftStride));
    if (draftsBehind > 0) {
      System.arraycopy(drafts, (at + 1) * draftStride, drafts, at * draftStride, draftsBehind);
    }
    sequences[--numSequences] = null;
    numTokens -= tokens;
    return tokens;
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

  /** Draft tokens among those that sequence {@code i} computes: they stand at its end. */
  public int numDrafts(int i) {
    return draftCounts[i];
  }

  /** Draft {@code j} of sequence {@code i}; -1 if the runner has it, or for padding that is always rejected. */
  public int draft(int i, int j) {
    if (j >= draftCounts[i]) {
      throw new IndexOutOfBoundsException("draft " + j + " of " + draftCounts[i]);
    }
    return drafts[i * draftStride + j];
  }
}
