package dev.tacho.engine;

import com.sun.management.OperatingSystemMXBean;
import dev.tacho.engine.kv.KvLayout;
import java.lang.management.ManagementFactory;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * How the memory of an engine is divided, decided before any of it is taken.
 *
 * @param engines engines that share the weights; each has its own workspace and KV cache
 * @param weightBytes the model's weights, packed
 * @param workspaceBytes activations and scratch of the largest step
 * @param kvBlocks blocks of the KV cache, the null block included
 * @param kvBlockBytes bytes of each
 */
record MemoryPlan(int engines, long weightBytes, long workspaceBytes, int kvBlocks, long kvBlockBytes) {
  /** Without an option the KV cache takes no more than this, nor more than this share of the machine. */
  private static final long DEFAULT_KV_BYTES = 4L << 30;

  private static final int DEFAULT_KV_SHARE = 4;

  /** Memory of the machine, or of the container if that is less. */
  static long machineBytes() {
    OperatingSystemMXBean system = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    return system.getTotalMemorySize();
  }

  /**
   * Divides.
   *
   * @param config options on the KV cache
   * @param maxModelLen tokens of a sequence at most; one such sequence must fit
   * @param layout shape of a KV block
   * @param weightBytes the model's weights, packed
   * @param workspaceBytes activations and scratch
   * @param machineBytes what there is
   * @throws ConfigurationException if it does not fit; names the option, with needed and configured bytes
   */
  static MemoryPlan of(
      EngineConfig config, int maxModelLen, KvLayout layout, long weightBytes, long workspaceBytes, long machineBytes) {
    OptionalInt override = config.numGpuBlocksOverride();
    Optional<MemorySize> budget = config.kvCacheMemory();
    EngineOption option = override.isPresent() ? EngineOption.NUM_GPU_BLOCKS_OVERRIDE : EngineOption.KV_CACHE_MEMORY;
    int oneSequence = KvLayout.blocksForTokens(maxModelLen);
    long blocks;
    if (override.isPresent()) {
      blocks = override.getAsInt();
    } else if (budget.isPresent()) {
      blocks = budget.get().bytes() / layout.blockBytes();
    } else {
      long most =
          Math.min(DEFAULT_KV_BYTES, machineBytes / DEFAULT_KV_SHARE) / config.dataParallelSize() / layout.blockBytes();
      blocks = Math.max(1L + oneSequence, Math.min(most, 1L + (long) oneSequence * config.maxNumSeqs()));
    }
    if (blocks < 1L + oneSequence) {
      throw new ConfigurationException(
          option.optionName(),
          "the KV cache of one sequence of max-model-len "
              + maxModelLen
              + " tokens needs "
              + bytes((1L + oneSequence) * layout.blockBytes())
              + " ("
              + (1L + oneSequence)
              + " blocks), configured are "
              + bytes(blocks * layout.blockBytes())
              + " ("
              + blocks
              + " blocks); raise it or lower max-model-len");
    }
    blocks = Math.min(blocks, Integer.MAX_VALUE / 2);
    MemoryPlan plan =
        new MemoryPlan(config.dataParallelSize(), weightBytes, workspaceBytes, (int) blocks, layout.blockBytes());
    if (plan.totalBytes() > machineBytes) {
      boolean withoutCache = weightBytes + saturatedProduct(plan.engines(), workspaceBytes) > machineBytes;
      EngineOption named = withoutCache ? plan.largerOfWeightsAndWorkspace() : option;
      throw new ConfigurationException(named.optionName(), plan.inWords() + "; the machine has " + bytes(machineBytes));
    }
    return plan;
  }

  /** True if so many bytes are left beside the plan. */
  boolean leaves(long bytes, long machineBytes) {
    return totalBytes() <= machineBytes - bytes;
  }

  private EngineOption largerOfWeightsAndWorkspace() {
    return weightBytes >= workspaceBytes ? EngineOption.MODEL : EngineOption.MAX_NUM_BATCHED_TOKENS;
  }

  /** Bytes of the KV cache. */
  long kvBytes() {
    return saturatedProduct(kvBlocks, kvBlockBytes);
  }

  /** Bytes of all three, of all engines. */
  long totalBytes() {
    long sum = weightBytes + saturatedProduct(engines, workspaceBytes);
    long caches = saturatedProduct(engines, kvBytes());
    return sum < 0 || caches > Long.MAX_VALUE - sum ? Long.MAX_VALUE : sum + caches;
  }

  /** The plan for an error message. */
  String inWords() {
    return "weights need "
        + bytes(weightBytes)
        + ", the KV cache "
        + bytes(kvBytes())
        + " ("
        + kvBlocks
        + " blocks), workspace "
        + bytes(workspaceBytes)
        + (engines == 1 ? ", together " : ", the last two for each of " + engines + " engines, together ")
        + bytes(totalBytes());
  }

  private static long saturatedProduct(long a, long b) {
    return Math.multiplyHigh(a, b) != 0 || a * b < 0 ? Long.MAX_VALUE : a * b;
  }

  private static String bytes(long bytes) {
    return bytes + " bytes (" + new MemorySize(bytes).human() + ")";
  }
}
