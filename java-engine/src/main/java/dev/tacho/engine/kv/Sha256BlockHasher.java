package dev.tacho.engine.kv;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.DigestException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * SHA-256 of
 *
 * <pre>
 *   +------------------+------------------+------------+
 *   | parent, 32 bytes | tokens, int32 LE | extra keys |
 *   +------------------+------------------+------------+
 * </pre>
 *
 * with the hash of a constant as the parent of a first block, so that hashes are equal in all processes.
 */
final class Sha256BlockHasher extends BlockHasher {
  private static final int HASH_BYTES = WORDS * Long.BYTES;
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private final MessageDigest digest;
  private final byte[] buffer;
  private final long[] root = new long[WORDS];

  Sha256BlockHasher(int blockTokens) {
    super(blockTokens);
    this.buffer = new byte[HASH_BYTES + blockTokens * Integer.BYTES];
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
    digest.update("tacho: no parent".getBytes(StandardCharsets.US_ASCII));
    finish(root, 0);
  }

  @Override
  void hash(int[] tokens, int index, byte[] extraKeys, long[] words) {
    long[] parent = index == 0 ? root : words;
    int parentAt = index == 0 ? 0 : (index - 1) * WORDS;
    for (int i = 0; i < WORDS; i++) {
      LONGS.set(buffer, i * Long.BYTES, parent[parentAt + i]);
    }
    int first = index * blockTokens();
    for (int i = 0; i < blockTokens(); i++) {
      INTS.set(buffer, HASH_BYTES + i * Integer.BYTES, tokens[first + i]);
    }
    digest.update(buffer, 0, buffer.length);
    if (extraKeys.length > 0) {
      digest.update(extraKeys, 0, extraKeys.length);
    }
    finish(words, index * WORDS);
  }

  private void finish(long[] words, int at) {
    try {
      digest.digest(buffer, 0, HASH_BYTES);
    } catch (DigestException e) {
      throw new IllegalStateException("the buffer holds a hash", e);
    }
    for (int i = 0; i < WORDS; i++) {
      words[at + i] = (long) LONGS.get(buffer, i * Long.BYTES);
    }
  }
}
