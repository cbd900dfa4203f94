package dev.tacho.engine.kv;

import java.util.function.IntFunction;

/** How full KV blocks are hashed for the prefix cache. */
public enum PrefixHashAlgorithm {
  /** SHA-256: nobody can make two prefixes with the same hash. */
  SHA256(Sha256BlockHasher::new),
  /** A 128-bit hash that is many times faster, and with which prefixes that collide can be made on purpose. */
  XXHASH(FastBlockHasher::new);

  @SuppressWarnings("ImmutableEnumChecker") // a constructor reference
  private final IntFunction<BlockHasher> constructor;

  PrefixHashAlgorithm(IntFunction<BlockHasher> constructor) {
    this.constructor = constructor;
  }

  /** A hasher for blocks of so many tokens. */
  public BlockHasher newHasher(int blockTokens) {
    return constructor.apply(blockTokens);
  }
}
