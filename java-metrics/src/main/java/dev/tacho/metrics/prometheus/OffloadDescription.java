package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.prometheus.MetricFamily.Gate;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * How an engine offloads keys and values, as far as its metrics show it. Immutable.
 *
 * @param labels the labels of the configuration's series
 * @param tiers names of the tiers beyond host memory, which bound the series
 * @param gates gates of the families that this opens
 */
public record OffloadDescription(Map<String, String> labels, List<String> tiers, Set<Gate> gates) {
  /** Nothing is offloaded. */
  public static final OffloadDescription NONE = new OffloadDescription(Map.of(), List.of(), Set.of());

  /** Copies; a tier's name may stand once. */
  public OffloadDescription {
    labels = Map.copyOf(labels);
    tiers = List.copyOf(tiers);
    gates = Set.copyOf(gates);
    if (new HashSet<>(tiers).size() < tiers.size()) {
      throw new IllegalArgumentException("tiers " + tiers + ": a name stands twice");
    }
  }

  /**
   * Offloading to host memory, and from there to tiers.
   *
   * @param chunks chunks of the cache in host memory
   * @param blocksPerChunk KV blocks of a chunk
   * @param cacheBytes bytes of that cache
   * @param cacheTokens tokens that it holds
   * @param storeThreshold uses of a block before it is stored
   * @param tiers names of the tiers beyond host memory; none for host memory alone
   */
  public static OffloadDescription toHost(long chunks, long blocksPerChunk, long cacheBytes, long cacheTokens,
      int storeThreshold, List<String> tiers) {
    Map<String, String> labels = new LinkedHashMap<>();
    labels.put("cpu_num_chunks", Long.toString(chunks));
    labels.put("cpu_blocks_per_chunk", Long.toString(blocksPerChunk));
    labels.put("cpu_kv_cache_size_bytes", Long.toString(cacheBytes));
    labels.put("cpu_kv_cache_size_tokens", Long.toString(cacheTokens));
    EnumSet<Gate> gates = EnumSet.of(Gate.OFFLOAD);
    if (storeThreshold >= 2) {
      gates.add(Gate.OFFLOAD_THRESHOLD);
    }
    if (!tiers.isEmpty()) {
      gates.add(Gate.OFFLOAD_TIERS);
    }
    return new OffloadDescription(labels, tiers, gates);
  }

  /**
   * Offloading by the simple connector.
   *
   * @param backend what moves the blocks
   * @param pageCache whether host memory is the file system's cache
   * @param lazy whether blocks are stored when they are evicted and not before
   * @param capacityBlocks blocks of its pool
   */
  public static OffloadDescription simple(String backend, boolean pageCache, boolean lazy, long capacityBlocks) {
    return new OffloadDescription(Map.of("backend", backend, "page_cache", pythonText(pageCache), "lazy_offload",
        pythonText(lazy), "capacity_blocks", Long.toString(capacityBlocks)), List.of(), Set.of(Gate.SIMPLE_OFFLOAD));
  }

  private static String pythonText(boolean value) {
    return value ? "True" : "False";
  }
}
