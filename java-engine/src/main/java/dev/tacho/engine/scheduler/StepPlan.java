package dev.tacho.engine.scheduler;

import java.util.Arrays;

/**
 * What one step computes: sequences in scheduling order, each with a number of tokens from a start position. Made and
 * reused by the scheduler; the runner reads it inside {@code launch} only, on the engine thread.
 */
public final class StepPlan {
  // What the plan says of a sequence stands together: entry i begins at i * STRIDE. A sequence is named by its place
  // among the running ones, which are copied as a whole: storing references one by one costs more than all the rest.
  private static final int STRIDE = 4;
  private static final int PLACE = 0;
  private static final int SCHEDULED = 1;
  private static final int START = 2;
  // Twice the number of drafts, and 1 if a token is sampled.
  private static final int DRAFTS_AND_SAMPLE = 3;

  private long step;
  private int numSequences;
  private int numTokens;
  private int[] entries = new int[16 * STRIDE];
  private final PlacedSequences placed = new PlacedSequences();
  private int draftStride;
  private int[] drafts = new int[0];

  /**
   * Empties the plan.
   *
   * @param stepNumber its number
   * @param maxDrafts drafts of a sequence at most
   * @param running those that run now; more may be added to them, but none moves while the step is planned
   */
  void reset(long stepNumber, int maxDrafts, RunningSequences running) {
    step = stepNumber;
    numSequences = 0;
    numTokens = 0;
    draftStride = maxDrafts;
    placed.copyFrom(running.placed());
  }

  /**
   * Adds a running sequence that computes {@code tokens} tokens from position {@code start}, of which the last {@code
   * numDrafts} are its first drafts.
   */
  void add(SequenceProgress progress, int tokens, int start, boolean sample, int numDrafts) {
    int i = numSequences;
    int at = i * STRIDE;
    if (at == entries.length) {
      entries = Arrays.copyOf(entries, at * 2);
    }
    if (numDrafts > 0) {
      if ((i + 1) * draftStride > drafts.length) {
        drafts = Arrays.copyOf(drafts, Math.max(16, 2 * (i + 1)) * draftStride);
      }
      System.arraycopy(progress.owner().drafts, 0, drafts, i * draftStride, numDrafts);
    }
    if (progress.place >= placed.end()) {
      placed.set(progress.place, progress);
    }
    entries[at + PLACE] = progress.place;
    entries[at + SCHEDULED] = tokens;
    entries[at + START] = start;
    entries[at + DRAFTS_AND_SAMPLE] = 2 * numDrafts + (sample ? 1 : 0);
    numSequences = i + 1;
    numTokens += tokens;
  }

  /** Takes the sequence at a place out again and gives the number of its tokens; 0 if it is not in the plan. */
  int remove(int place) {
    int at = 0;
    while (at < numSequences && place(at) != place) {
      at++;
    }
    if (at == numSequences) {
      return 0;
    }
    int tokens = scheduledTokens(at);
    int behind = numSequences - at - 1;
    System.arraycopy(entries, (at + 1) * STRIDE, entries, at * STRIDE, behind * STRIDE);
    int draftsBehind = Math.max(0, Math.min(behind * draftStride, drafts.length - (at + 1) * draftStride));
    if (draftsBehind > 0) {
      System.arraycopy(drafts, (at + 1) * draftStride, drafts, at * draftStride, draftsBehind);
    }
    numSequences--;
    numTokens -= tokens;
    return tokens;
  }

  /** All sequences that ran when the step was planned. */
  PlacedSequences placed() {
    return placed;
  }

  /** Where sequence {@code i} stands among them. */
  int place(int i) {
    return entries[i * STRIDE + PLACE];
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
    if (i >= numSequences) {
      throw new IndexOutOfBoundsException("sequence " + i + " of " + numSequences);
    }
    return placed.sequence(place(i));
  }

  /** How far sequence {@code i} has come. */
  SequenceProgress progress(int i) {
    Sequence s = sequence(i);
    SequenceProgress progress = placed.progress(place(i));
    // It may have left the running ones since, and its object may be another's.
    return progress.sequence == s ? progress : s.progress();
  }

  /** Tokens that sequence {@code i} computes. */
  public int scheduledTokens(int i) {
    return entries[i * STRIDE + SCHEDULED];
  }

  /** Position of the first of them: tokens computed before this step. */
  public int startPosition(int i) {
    return entries[i * STRIDE + START];
  }

  /** True if a token is sampled after the last of them (the step reaches the sequence's end). */
  public boolean samples(int i) {
    return (entries[i * STRIDE + DRAFTS_AND_SAMPLE] & 1) != 0;
  }

  /** Draft tokens among those that sequence {@code i} computes: they stand at its end. */
  public int numDrafts(int i) {
    return entries[i * STRIDE + DRAFTS_AND_SAMPLE] >> 1;
  }

  /** Draft {@code j} of sequence {@code i}; -1 if the runner has it, or for padding that is always rejected. */
  public int draft(int i, int j) {
    if (j >= numDrafts(i)) {
      throw new IndexOutOfBoundsException("draft " + j + " of " + numDrafts(i));
    }
    return drafts[i * draftStride + j];
  }
}
