package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;

/**
 * The KV cache of one layer, off-heap, owned by the engine's KV memory.
 *
 * <pre>
 *   k [numBlocks][numKvHeads] panels [headDim][16 tokens]
 *   v [numBlocks][numKvHeads] panels [16 tokens][headDim]
 * </pre>
 *
 * <p>F32, F16 and BF16 panels are their elements alone. A Q8_0 panel begins with the scales of its groups of 32
 * elements of one token (the rest of the head, in the last group), then come the codes in the order of the elements; an
 * element is code times scale:
 *
 * <pre>
 *   f16 [ceil(headDim / 32)][16 tokens] | int8 [headDim][16] of K, [16][headDim] of V
 * </pre>
 *
 * @param dtype F32, F16, BF16 or Q8_0
 * @param numBlocks blocks, the null block 0 included
 * @param numKvHeads heads of K and V
 * @param headDim elements of a head
 * @param k see above
 * @param v see above
 */
public record KvCacheLayer(
    DType dtype, int numBlocks, int numKvHeads, int headDim, MemorySegment k, MemorySegment v) {
  /** Tokens of a block. */
  public static final int BLOCK_TOKENS = 16;

  /** Elements of a token that share a scale in Q8_0. */
  public static final int SCALE_ELEMENTS = 32;

  /** Checks shapes against sizes. */
  public KvCacheLayer {
    checkType(dtype);
    if (numBlocks <= 0 || numKvHeads <= 0 || headDim <= 0) {
      throw new IllegalArgumentException(
          "KV cache of " + numBlocks + " blocks, " + numKvHeads + " heads of " + headDim + " elements");
    }
    long bytes = Math.multiplyExact((long) numBlocks, blockBytes(dtype, numKvHeads, headDim));
    if (k.byteSize() < bytes || v.byteSize() < bytes) {
      throw new IllegalArgumentException(
          "KV cache needs " + bytes + " bytes each, K has " + k.byteSize() + ", V has " + v.byteSize());
    }
  }

  /** Refuses a type in which no cache is kept. */
  public static void checkType(DType dtype) {
    switch (dtype) {
      case F32, F16, BF16, Q8_0 -> {}
      default -> throw new IllegalArgumentException("KV cache of " + dtype + ", expected F32, F16, BF16 or Q8_0");
    }
  }

  /** Bytes of K (the same for V) of one token's head. */
  public static long headBytes(DType dtype, int headDim) {
    return dtype == DType.Q8_0 ? headDim + 2L * scales(headDim) : dtype.bytes(headDim);
  }

  private static int scales(int headDim) {
    return Math.ceilDiv(headDim, SCALE_ELEMENTS);
  }

  /** Bytes of one block of K (the same for V) of one layer. */
  public static long blockBytes(DType dtype, int numKvHeads, int headDim) {
    return Math.multiplyExact((long) numKvHeads * BLOCK_TOKENS, headBytes(dtype, headDim));
  }

  /** Alignment of K and V in bytes. */
  public int alignment() {
    return dtype == DType.F32 ? Float.BYTES : Short.BYTES;
  }

  /** Byte offset of a head's panel in a block, the same in K and V. */
  public long headOffset(long block, int kvHead) {
    return (block * numKvHeads + kvHead) * BLOCK_TOKENS * headBytes(dtype, headDim);
  }

  /** Byte offset of a Q8_0 panel's codes, from where the panel begins. */
  public long codesOffset() {
    return (long) scales(headDim) * BLOCK_TOKENS * Short.BYTES;
  }

  /** Byte offset of the scale of element {@code d} of a token, from where a Q8_0 panel begins. */
  public long scaleOffset(int token, int d) {
    return ((long) d / SCALE_ELEMENTS * BLOCK_TOKENS + token) * Short.BYTES;
  }

  /** The number of element {@code d} of a token in a panel of K. */
  public long keyIndex(int token, int d) {
    return (long) d * BLOCK_TOKENS + token;
  }

  /** The number of element {@code d} of a token in a panel of V. */
  public long valueIndex(int token, int d) {
    return (long) token * headDim + d;
  }

  /** Element {@code d} of a token in the panel of K at a byte offset. */
  public float key(long panel, int token, int d) {
    return element(k, panel, keyIndex(token, d), token, d);
  }

  /** Element {@code d} of a token in the panel of V at a byte offset. */
  public float value(long panel, int token, int d) {
    return element(v, panel, valueIndex(token, d), token, d);
  }

  private float element(MemorySegment cache, long panel, long index, int token, int d) {
    if (dtype == DType.Q8_0) {
      byte code = cache.get(JAVA_BYTE, panel + codesOffset() + index);
      return Elements.f16(cache, panel + scaleOffset(token, d)) * code;
    }
    return Elements.get(dtype, cache, panel, index);
  }
}
