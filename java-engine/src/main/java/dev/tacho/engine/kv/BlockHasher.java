package dev.tacho.engine.kv;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Computes the chained hash of full KV blocks: H(hash of the block before, token ids, what else decides about the
 * contents). Equal hashes thus mean equal whole prefixes. One thread at a time; allocates nothing after construction.
 */
public abstract sealed class BlockHasher permits Sha256BlockHasher, FastBlockHasher {
  /** 64-bit words that a hash takes; a shorter hash leaves the last ones 0. */
  static final int WORDS = 4;

  private static final byte[] NO_KEYS = {};
  private static final byte ADAPTER_TAG = 1;
  private static final byte SALT_TAG = 2;
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private final int blockTokens;

  BlockHasher(int blockTokens) {
    this.blockTokens = blockTokens;
  }

  /** Tokens of a block. */
  public final int blockTokens() {
    return blockTokens;
  }

  /**
   * Hashes block {@code index} of a sequence into {@code words[index * WORDS]}; the blocks before it are hashed there
   * already.
   *
   * @param tokens of the sequence, at least up to the block's end
   * @param index the block
   * @param extraKeys see {@link #extraKeys}
   * @param words hashes of the sequence, with room for the block's
   */
  abstract void hash(int[] tokens, int index, byte[] extraKeys, long[] words);

  /**
   * Tagged extra keys in bytes: the adapter's name, and the cache salt; empty strings are left out.
   *
   * <pre>
   *   +-----+------------------+-------+
   *   | tag | length, int32 LE | UTF-8 |  once per key
   *   +-----+------------------+-------+
   * </pre>
   */
  static byte[] extraKeys(String adapterName, String cacheSalt) {
    if (adapterName.isEmpty() && cacheSalt.isEmpty()) {
      // One for all sequences, so that it is at hand when a block is hashed.
      return NO_KEYS;
    }
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
