package dev.tacho.engine.kv;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.DigestException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * Computes the chained SHA-256 hash of full KV blocks: H(hash of the block before, token ids, what else decides about
 * the contents). Equal hashes thus mean equal whole prefixes. Not thread-safe: it owns a digest and a buffer.
 *
 * <pre>
 *   +--------------------+---------------------+----------------------------+
 *   | parent, 32 bytes   | tokens, int32 LE    | tag (1) length (4) UTF-8   |  the last once per extra key
 *   +--------------------+---------------------+----------------------------+
 * </pre>
 */
public final class BlockHasher {
  /** 64-bit words of a hash. */
  static final int WORDS = 4;

  private static final int HASH_BYTES = WORDS * Long.BYTES;
  private static final byte ADAPTER_TAG = 1;
  private static final byte SALT_TAG = 2;
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private final int blockTokens;
  private final MessageDigest digest;
  private final byte[] buffer;
  private final long[] root = new long[WORDS];

  /**
   * @param blockTokens tokens of a block
   */
  public BlockHasher(int blockTokens) {
    this.blockTokens = blockTokens;
    this.buffer = new byte[HASH_BYTES + blockTokens * Integer.BYTES];
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
    digest.update("tacho: no parent".getBytes(StandardCharsets.US_ASCII));
    finish(root, 0);
  }

  /** Tokens of a block. */
  public int blockTokens() {
    return blockTokens;
  }

  /**
   * Hashes block {@code index} of a sequence into {@code words[index * WORDS]}; the blocks before it are hashed there
   * already.
   */
  void hash(int[] tokens, int index, byte[] extraKeys, long[] words) {
    long[] parent = index == 0 ? root : words;
    int parentAt = index == 0 ? 0 : (index - 1) * WORDS;
    for (int i = 0; i < WORDS; i++) {
      LONGS.set(buffer, i * Long.BYTES, parent[parentAt + i]);
    }
    for (int i = 0; i < blockTokens; i++) {
      INTS.set(buffer, HASH_BYTES + i * Integer.BYTES, tokens[index * blockTokens + i]);
    }
    digest.update(buffer, 0, buffer.length);
    digest.update(extraKeys, 0, extraKeys.length);
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

  /** Tagged extra keys in bytes: the adapter's name, and the cache salt; empty strings are left out. */
  static byte[] extraKeys(String adapterName, String cacheSalt) {
    byte[] adapter = adapterName.getBytes(StandardCharsets.UTF_8);
    byte[] salt = cacheSalt.getBytes(StandardCharsets.UTF_8);
    byte[] keys = new byte[keyBytes(adapter) + keyBytes(salt)];
    int at = putKey(keys, 0, ADAPTER_TAG, adapter);
    putKey(keys, at, SALT_TAG, salt);
    return keys;
  }

  private static int keyBytes(byte[] text) {
    return text.length == 0 ? 0 : 1 + Integer.BYTES + text.length;
  }

  private static int putKey(byte[] keys, int at, byte tag, byte[] text) {
    if (text.length == 0) {
      return at;
    }
    keys[at] = tag;
    INTS.set(keys, at + 1, text.length);
    System.arraycopy(text, 0, keys, at + 1 + Integer.BYTES, text.length);
    return at + 1 + Integer.BYTES + text.length;
  }
}
