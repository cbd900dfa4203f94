package dev.tacho.engine.kv;

import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.KvCacheLayer;

/**
 * How much memory the KV cache takes: the shape of a block and how many blocks a budget holds. Immutable.
 *
 * @param numLayers layers that keep keys and values
 * @param numKvHeads heads of K and V in each
 * @param headDim elements of a head
 * @param dtype F32, F16, BF16 or Q8_0
 */
public record KvLayout(int numLayers, int numKvHeads, int headDim, DType dtype) {
  /** Checks the shape. */
  public KvLayout {
    if (numLayers < 1 || numKvHeads < 1 || headDim < 1) {
      throw new IllegalArgumentException(
          "KV cache of " + numLayers + " layers, " + numKvHeads + " heads of " + headDim + " elements");
    }
    KvCacheLayer.checkType(dtype);
  }

  /** Bytes of one block of {@link KvCacheLayer#BLOCK_TOKENS} tokens: K and V of all layers. */
  public long blockBytes() {
    return Math.multiplyExact(2L * numLayers, KvCacheLayer.blockBytes(dtype, numKvHeads, headDim));
  }

  /** Blocks that so many tokens of one sequence need. */
  public static int blocksForTokens(long tokens) {
    return Math.toIntExact((tokens + KvCacheLayer.BLOCK_TOKENS - 1) / KvCacheLayer.BLOCK_TOKENS);
  }

  /**
   * Blocks that a memory budget holds, the null block included.
   *
   * @param budgetBytes {@code kv_cache_memory}
   * @param maxModelLen tokens of the longest sequence; one such sequence must fit
   * @throws IllegalArgumentException if it does not, with needed and configured bytes
   */
  public int blocksForBudget(long budgetBytes, int maxModelLen) {
    long blocks = Math.max(0, budgetBytes) / blockBytes();
    checkBlocks("kv_cache_memory", blocks, budgetBytes, maxModelLen);
    return (int) Math.min(blocks, Integer.MAX_VALUE - 8);
  }

  /**
   * Checks a number of blocks given by hand.
   *
   * @param numBlocks {@code num_gpu_blocks_override}, the null block included
   * @param maxModelLen tokens of the longest sequence; one such sequence must fit
   * @throws IllegalArgumentException if it does not, with needed and configured bytes
   */
  public int checkedBlocks(int numBlocks, int maxModelLen) {
    checkBlocks("num_gpu_blocks_override", numBlocks, Math.max(0, numBlocks) * blockBytes(), maxModelLen);
    return numBlocks;
  }

  private void checkBlocks(String option, long blocks, long configuredBytes, int maxModelLen) {
    long needed = 1L + blocksForTokens(maxModelLen);
    if (blocks < needed) {
      throw new IllegalArgumentException(
          option
              + ": the KV cache of one sequence of max_model_len "
              + maxModelLen
              + " tokens needs "
              + needed
              + " blocks, "
              + needed * blockBytes()
              + " bytes; configured are "
              + configuredBytes
              + " bytes, "
              + blocks
              + " blocks; raise "
              + option
              + " or lower max_model_len");
    }
  }
}
