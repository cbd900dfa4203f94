package dev.tacho.metrics.stats;

/**
 * Prompt tokens by where they came from, summed over the requests that gave a first output. Always: computed + local +
 * external = total, and local + external = cached.
 */
public final class PromptTokenStats {
  private long computed;
  private long localCacheHit;
  private long externalKvTransfer;

  /**
   * Adds a prompt.
   *
   * @param promptTokens its length
   * @param local tokens found in the prefix cache
   * @param external tokens that a KV connector supplied
   * @throws IllegalArgumentException if more tokens are cached than the prompt has
   */
  public void add(long promptTokens, long local, long external) {
    if (local < 0 || external < 0 || local + external > promptTokens) {
      throw new IllegalArgumentException(local + " local and " + external + " external cached tokens of a prompt of "
          + promptTokens);
    }
    computed += promptTokens - local - external;
    localCacheHit += local;
    externalKvTransfer += external;
  }

  /**
   * Prompt tokens that a request added to the prefix cache.
   *
   * @param inCache tokens of the request that are in the cache when its first output leaves
   * @param promptTokens length of its prompt
   * @param cached tokens of it that were not computed
   */
  public static long cacheCreation(long inCache, long promptTokens, long cached) {
    return Math.max(0, Math.min(inCache, promptTokens) - cached);
  }

  /** Adds the sums of another. */
  void add(PromptTokenStats other) {
    computed += other.computed;
    localCacheHit += other.localCacheHit;
    externalKvTransfer += other.externalKvTransfer;
  }

  /** Sets the sums to 0. */
  public void clear() {
    computed = 0;
    localCacheHit = 0;
    externalKvTransfer = 0;
  }

  /** Tokens that the engine computed. */
  public long computed() {
    return computed;
  }

  /** Tokens found in the prefix cache. */
  public long localCacheHit() {
    return localCacheHit;
  }

  /** Tokens that a KV connector supplied. */
  public long externalKvTransfer() {
    return externalKvTransfer;
  }

  /** Tokens that were not computed. */
  public long cached() {
    return localCacheHit + externalKvTransfer;
  }

  /** All tokens of the prompts. */
  public long total() {
    return computed + localCacheHit + externalKvTransfer;
  }
}
