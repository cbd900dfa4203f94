package dev.tacho.metrics.stats;

import dev.tacho.metrics.perf.WorkEstimate;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * State of a scheduler at one moment, and what happened since the moment before. A snapshot overwrites; its increments
 * add. Reused by the collector.
 */
public final class SchedulerStats {
  private int running;
  private int waiting;
  private int deferred;
  private double kvCacheUsage;
  private int fetchesToStart;
  private int fetchesInProgress;
  private int fetchesCompleted;
  private final CacheLookups prefixCache = new CacheLookups();
  private final ConnectorCacheStats connectorCache = new ConnectorCacheStats();
  private final SpeculationStats speculation = new SpeculationStats();
  private final ResidencyStats residency = new ResidencyStats();
  private final TransferStats transfers = new TransferStats();
  private final OffloadStats offload = new OffloadStats();
  private final EncoderCacheStats encoderCache = new EncoderCacheStats();
  private final WorkEstimate work = new WorkEstimate();
  private List<String> adapters = List.of();
  private @Nullable IterationDetails details;
  private @Nullable GraphStat graph;

  /** Sets the queues: running, waiting for capacity, and passed over. */
  public void queues(int newRunning, int newWaiting, int newDeferred) {
    running = newRunning;
    waiting = newWaiting;
    deferred = newDeferred;
  }

  /**
   * Sets the usage of the KV cache.
   *
   * @param freeBlocks free blocks; cached blocks that nobody refers to are free
   * @param blocks blocks without the null block
   */
  public void kvCache(int freeBlocks, int blocks) {
    kvCacheUsage = kvCacheUsage(freeBlocks, blocks);
  }

  /** Sets the usage of the KV cache, in [0, 1]. */
  public void kvCacheUsage(double usage) {
    kvCacheUsage = usage;
  }

  /** Sets the requests whose keys and values a connector fetches: to start, in progress, fetched and not running. */
  public void kvFetches(int toStart, int inProgress, int completed) {
    fetchesToStart = toStart;
    fetchesInProgress = inProgress;
    fetchesCompleted = completed;
  }

  /** Sets the adapters that open requests use, in the order in which they were first seen. */
  public void adapters(List<String> names) {
    adapters = List.copyOf(names);
  }

  /** Sets what the step worked on. */
  public void details(@Nullable IterationDetails newDetails) {
    details = newDetails;
  }

  /** Sets the graph that ran the step. */
  public void graph(@Nullable GraphStat newGraph) {
    graph = newGraph;
  }

  /** Forgets the increments and what belongs to one step; the state stays. */
  public void clearIncrements() {
    prefixCache.clear();
    connectorCache.clear();
    speculation.reset(speculation.positions());
    residency.clear();
    transfers.clear();
    offload.clear();
    encoderCache.clear();
    work.reset();
    details = null;
    graph = null;
  }

  /** A copy for who keeps it. */
  public SchedulerStats copy() {
    SchedulerStats copy = new SchedulerStats();
    copy.queues(running, waiting, deferred);
    copy.kvCacheUsage(kvCacheUsage);
    copy.kvFetches(fetchesToStart, fetchesInProgress, fetchesCompleted);
    copy.prefixCache.add(prefixCache);
    copy.connectorCache.add(connectorCache);
    copy.speculation.add(speculation);
    copy.residency.add(residency);
    copy.transfers.add(transfers);
    copy.offload.add(offload);
    copy.encoderCache.add(encoderCache);
    copy.work.add(work);
    copy.adapters = adapters;
    copy.details = details;
    copy.graph = graph;
    return copy;
  }

  /** Running requests. */
  public int running() {
    return running;
  }

  /** Waiting requests that nothing but capacity holds up. */
  public int waiting() {
    return waiting;
  }

  /** Waiting requests that were passed over. */
  public int deferred() {
    return deferred;
  }

  /** Share of the KV blocks that requests refer to, in [0, 1]. */
  public double kvCacheUsage() {
    return kvCacheUsage;
  }

  /** Requests whose keys and values a connector is to fetch. */
  public int fetchesToStart() {
    return fetchesToStart;
  }

  /** Requests whose keys and values it fetches. */
  public int fetchesInProgress() {
    return fetchesInProgress;
  }

  /** Requests whose keys and values it has fetched and that do not run yet. */
  public int fetchesCompleted() {
    return fetchesCompleted;
  }

  /** Look-ups of the prefix cache since the snapshot before. */
  public CacheLookups prefixCache() {
    return prefixCache;
  }

  /** Look-ups of a KV connector since the snapshot before. */
  public ConnectorCacheStats connectorCache() {
    return connectorCache;
  }

  /** Speculative decoding since the snapshot before. */
  public SpeculationStats speculation() {
    return speculation;
  }

  /** KV blocks evicted since the snapshot before. */
  public ResidencyStats residency() {
    return residency;
  }

  /** KV transfers since the snapshot before. */
  public TransferStats transfers() {
    return transfers;
  }

  /** Offloaded keys and values since the snapshot before. */
  public OffloadStats offload() {
    return offload;
  }

  /** The encoder cache since the snapshot before. */
  public EncoderCacheStats encoderCache() {
    return encoderCache;
  }

  /** Adapters that open requests use. */
  public List<String> adapters() {
    return adapters;
  }

  /** What the step worked on, or null if it is not recorded. */
  public @Nullable IterationDetails details() {
    return details;
  }

  /** The graph that ran the step, or null. */
  public @Nullable GraphStat graph() {
    return graph;
  }

  /** Estimated work since the snapshot before; zero if it is not estimated. */
  public WorkEstimate work() {
    return work;
  }

  /** Usage of a KV cache with {@code blocks} blocks besides the null block; 0 if it has none. */
  public static double kvCacheUsage(int freeBlocks, int blocks) {
    return blocks == 0 ? 0 : 1.0 - (double) freeBlocks / blocks;
  }
}
