package dev.tacho.engine.scheduler;

import dev.tacho.engine.kv.BlockHasher;
import dev.tacho.engine.kv.PrefixHashes;
import dev.tacho.engine.kv.SequenceBlocks;
import java.util.Arrays;
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

  static final int[] NO_TOKENS = {};

  static final SequenceBlocks NO_BLOCKS = new SequenceBlocks(new PrefixHashes("", ""));

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

  /** With so many tokens there is a full block that has not been hashed. */
  int nextHashAt;

  /** With so many tokens it ends: as long as was asked for, or as the context. */
  int fullLength;

  /** The last step scheduled left some of its tokens uncomputed, so it samples nothing. */
  boolean midPrompt;

  /** How the prompt was computed has been told. */
  boolean prefillReported;

  /** Nothing but its length ends it. */
  boolean endsByLength;

  /** Tokens of the prompt. */
  int promptLength;

  /** Tokens of prompt and output; there may be room behind them. */
  int[] tokens;

  /** Its KV blocks; {@link #NO_BLOCKS} if it is nobody's. */
  SequenceBlocks blocks;

  SequenceProgress(int[] tokens, SequenceBlocks blocks) {
    this.tokens = tokens;
    this.blocks = blocks;
  }

  /** Whose it is; only for one that is somebody's. */
  Sequence owner() {
    return Objects.requireNonNull(sequence);
  }

  /** Makes it nobody's. */
  void clear() {
    place = NO_PLACE;
    sequence = null;
    tokens = NO_TOKENS;
    blocks = NO_BLOCKS;
  }

  /** Adds a token behind the others. */
  void append(int id) {
    if (length == tokens.length) {
      tokens = Arrays.copyOf(tokens, Math.max(16, length * 2));
    }
    tokens[length++] = id;
  }

  /** Makes room for tokens, and for blocks of so many tokens and their hashes, once for all. */
  void reserve(int room, int blockTokens) {
    if (room > tokens.length) {
      tokens = Arrays.copyOf(tokens, room);
      blocks.reserve((room + blockTokens - 1) / blockTokens);
    }
  }

  /** Hashes the blocks that have become full since the last time. */
  void hashBlocks(BlockHasher hasher) {
    if (length >= nextHashAt) {
      nextHashAt = blocks.extendHashes(hasher, tokens, length);
    }
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
    promptLength = other.promptLength;
    tokens = other.tokens;
    blocks = other.blocks;
  }
}
