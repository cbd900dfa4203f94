package dev.tacho.engine.kv;

/**
 * A group of layers that keep the same tokens in the cache, and so share a block table: all tokens, or those that a
 * sliding window reaches.
 *
 * @param windowTokens a token attends to itself and the {@code windowTokens - 1} before it; 0: to all before it
 * @param publishAll every full block can be found in the prefix cache; else, with a window, only what a request with
 *     the same prompt needs
 */
public record KvGroup(int windowTokens, boolean publishAll) {
  /** Checks the window. */
  public KvGroup {
    if (windowTokens < 0) {
      throw new IllegalArgumentException("sliding_window must be at least 0 (0 keeps all), is " + windowTokens);
    }
  }

  /** Layers that attend to everything. */
  public static KvGroup full() {
    return new KvGroup(0, true);
  }

  /** Layers with a sliding window. */
  public static KvGroup window(int windowTokens, boolean publishAll) {
    return new KvGroup(windowTokens, publishAll);
  }

  /** True if old tokens fall out of reach. */
  boolean slides() {
    return windowTokens > 0;
  }

  /** Leading tokens that nobody reaches any more when so many have been processed. */
  int tokensOutOfReach(int processed) {
    return slides() ? Math.max(0, processed - windowTokens + 1) : 0;
  }

  /** Blocks that the next token reaches before itself, at least, for a prefix to be of use. */
  int blocksInReach(int blockTokens) {
    return (windowTokens - 1 + blockTokens - 1) / blockTokens;
  }

  /** True if full block {@code i} of a prompt's sequence goes into the prefix cache. */
  boolean publishes(int i, int promptLength, int lostPrefixBlocks, int blockTokens) {
    if (!slides() || publishAll) {
      return true;
    }
    int reach = blocksInReach(blockTokens);
    int end = (promptLength - 1) / blockTokens;
    return (i < end && i >= end - reach) || (i < lostPrefixBlocks && i >= lostPrefixBlocks - reach);
  }
}
