package dev.tacho.engine.model;

import dev.tacho.engine.kernel.KvCacheLayer;

/**
 * The largest step that a runner has room for.
 *
 * @param maxTokens tokens of a step
 * @param maxSequences sequences of a step
 * @param maxContext positions of a sequence
 */
public record RunnerLimits(int maxTokens, int maxSequences, int maxContext) {
  /** Checks that all are positive. */
  public RunnerLimits {
    if (maxTokens < 1 || maxSequences < 1 || maxContext < 1) {
      throw new IllegalArgumentException(
          "limits of a step: " + maxTokens + " tokens, " + maxSequences + " sequences, context " + maxContext);
    }
  }

  /** KV blocks of a sequence at most. */
  int maxBlocks() {
    return Math.ceilDiv(maxContext, KvCacheLayer.BLOCK_TOKENS);
  }

  /** Rows of logits at most: one a sequence, and a sequence has at least one token. */
  int maxSampledRows() {
    return Math.min(maxSequences, maxTokens);
  }
}
