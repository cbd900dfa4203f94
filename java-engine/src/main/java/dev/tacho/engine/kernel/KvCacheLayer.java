package dev.tacho.engine.kernel;

import java.lang.foreign.MemorySegment;

/**
 * The KV cache of one layer, off-heap, owned by the engine's KV memory.
 *
 * <pre>
 *   k [numBlocks][numKvHeads][headDim][16 tokens]
 *   v [numBlocks][numKvHeads][16 tokens][headDim]
 * </pre>
 *
 * @param dtype F32, F16 or BF16
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

  /** Checks shapes against sizes. */
  public KvCacheLayer {
    if (dtype != DType.F32 && dtype != DType.F16 && dtype != DType.BF16) {
      throw new IllegalArgumentException("KV cache of " + dtype + ", expected F32, F16 or BF16");
    }
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

  /** Byte offset of a head in a block, the same in K and V. */
  public long headOffset(long block, int kvHead) {
    return (block * numKvHeads + kvHead) * headDim * BLOCK_TOKENS * dtype.blockBytes();
  }

  /** Bytes of one block of K (the same for V) of one layer. */
  public static long blockBytes(DType dtype, int numKvHeads, int headDim) {
    return dtype.bytes((long) numKvHeads * headDim * BLOCK_TOKENS);
  }
}
