package dev.tacho.engine.scheduler;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * How far a sequence has come: all that a step looks at. Running sequences have theirs from {@link RunningSequences},
 * where they lie side by side, so that a step over thousands of sequences reads little memory; the others keep it
 * themselves. Engine thread only.
 */
final class SequenceProgress {
  /** {@link #place} of what stands nowhere. */
  static final int NO_PLACE = -1;

  /** Whose it is; null if it is nobody's. */
  @Nullable Sequence sequence;

  /** Its place among the running sequences. */
  int place = NO_PLACE;

  /** Tokens of prompt and output. */
  int length;

  /** Leading tokens that are in the KV cache or in a step that has been scheduled. */
  int computedTokens;

  /** Tokens of steps whose output has not been processed. */
  int inFlightTokens;

  /**
   * The part of them that was scheduled before the last preemption: delivered, but no longer part of the computed ones.
   */
  int staleTokens;

  /** Tokens that steps in flight will give, drafts that they check included; asynchronous scheduling only. */
  int placeholders;

  /** Draft tokens for the next step. */
  int numDrafts;

  /** With at most so many computed tokens no block table changes and nothing is published. */
  int quietUntil;

  /** With so many tokens the next block is full, and is to be hashed. */
  int nextHashAt;

  /** With so many tokens the output is as long as was asked for. */
  int fullLength;

  /** The last step scheduled left some of its tokens uncomputed, so it samples nothing. */
  boolean midPrompt;

  /** How the prompt was computed has been told. */
  boolean prefillReported;

  /** Nothing but its length ends it. */
  boolean endsByLength;

  /** Tokens of prompt and output; there may be room behind them. */
  int[] tokens;

  SequenceProgress(int[] tokens) {
    this.tokens = tokens;
  }

  /** Whose it is; only for one that is somebody's. */
  Sequence owner() {
    return Objects.requireNonNull(sequence);
  }

  /** Takes over all but the place. */
  void copyFrom(SequenceProgress other) {
    sequence = other.sequence;
    length = other.length;
    computedTokens = other.computedTokens;
    inFlightTokens = other.inFlightTokens;
    staleTokens = other.staleTokens;
    placeholders = other.placeholders;
    numDrafts = other.numDrafts;
    quietUntil = other.quietUntil;
    nextHashAt = other.nextHashAt;
    fullLength = other.fullLength;
    midPrompt = other.midPrompt;
    prefillReported = other.prefillReported;
    endsByLength = other.endsByLength;
    tokens = other.tokens;
  }
}
