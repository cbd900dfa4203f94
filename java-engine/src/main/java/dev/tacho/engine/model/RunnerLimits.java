package dev.tacho.engine.model;

import dev.tacho.engine.kernel.KvCacheLayer;

/**
 * The largest step that a runner has room for.
 *
 * @param maxTokens tokens of a step
 * @param maxSequences sequences of a step
 * @param maxContext positions of a sequence
 * @param maxDrafts draft tokens of a sequence in a step; 0 without speculation
 */
public record RunnerLimits(int maxTokens, int maxSequences, int maxContext, int maxDrafts) {
  /** Checks that all are positive; there may be no drafts. */
  public RunnerLimits {
    if (maxTokens < 1 || maxSequences < 1 || maxContext < 1 || maxDrafts < 0) {
      throw new IllegalArgumentException(
          "limits of a step: " + maxTokens + " tokens, " + maxSequences + " sequences, context " + maxContext
              + ", drafts " + maxDrafts);
    }
  }

  /** KV blocks of a sequence at most. */
  int maxBlocks() {
    return Math.ceilDiv(maxContext, KvCacheLayer.BLOCK_TOKENS);
  }

  /** Rows of logits at most: one a sequence and one a draft, each of them a token of the step. */
  int maxSampledRows() {
    return (int) Math.min(maxSequences * (1L + maxDrafts), maxTokens);
  }
}
