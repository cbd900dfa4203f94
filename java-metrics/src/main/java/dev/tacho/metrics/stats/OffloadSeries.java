package dev.tacho.metrics.stats;

import java.util.List;

/**
 * What a connector that offloads keys and values reports, each with the kind of number that it is. Series of a tier
 * have a child for each tier, and for each value of their label within it.
 */
public enum OffloadSeries {
  /** Bytes brought back to the device. */
  LOAD_BYTES(Kind.COUNT),
  /** Seconds that this took. */
  LOAD_TIME(Kind.COUNT),
  /** Bytes of one such transfer. */
  LOAD_SIZE(Kind.SAMPLE),
  /** Bytes put away. */
  STORE_BYTES(Kind.COUNT),
  /** Seconds that this took. */
  STORE_TIME(Kind.COUNT),
  /** Bytes of one such transfer. */
  STORE_SIZE(Kind.SAMPLE),
  /** Seconds of a look-up call. */
  LOOKUP_SYNC_DELAY(Kind.SAMPLE),
  /** Seconds until a deferred look-up was answered. */
  LOOKUP_ASYNC_DELAY(Kind.SAMPLE),
  /** Stores that found no room. */
  ALLOCATION_FAILURE(Kind.COUNT),
  /** Bytes by direction: to the device (0), from it (1). */
  TOTAL_BYTES(Kind.COUNT, "CPU_to_GPU", "GPU_to_CPU"),
  /** Seconds by direction. */
  TOTAL_TIME(Kind.COUNT, "CPU_to_GPU", "GPU_to_CPU"),
  /** Bytes of a transfer by direction. */
  SIZE(Kind.SAMPLE, "CPU_to_GPU", "GPU_to_CPU"),
  /** Share of the cache in host memory that is used. */
  CPU_CACHE_USAGE(Kind.LEVEL),
  /** Share of it that stores hold. */
  CPU_CACHE_WRITE_USAGE(Kind.LEVEL),
  /** Share of it that loads hold. */
  CPU_CACHE_READ_USAGE(Kind.LEVEL),
  /** Blocks that a store asked for. */
  CPU_ALLOCATION_SIZE(Kind.SAMPLE),
  /** Stores left out because their blocks were used too seldom. */
  STORES_SKIPPED(Kind.COUNT),
  /** Seconds of a look-up call in a tier. */
  TIER_LOOKUP_SYNC_DELAY(Kind.SAMPLE),
  /** Seconds until a tier answered a deferred look-up. */
  TIER_LOOKUP_ASYNC_DELAY(Kind.SAMPLE),
  /** Bytes read from a tier. */
  TIER_READ_BYTES(Kind.COUNT),
  /** Seconds that this took. */
  TIER_READ_TIME(Kind.COUNT),
  /** Bytes written to a tier. */
  TIER_WRITE_BYTES(Kind.COUNT),
  /** Seconds that this took. */
  TIER_WRITE_TIME(Kind.COUNT),
  /** Jobs that were to bring chunks up from a tier and failed. */
  TIER_PROMOTION_JOB_FAILURES(Kind.COUNT),
  /** Jobs that were to pass chunks down to a tier and failed. */
  TIER_CASCADE_JOB_FAILURES(Kind.COUNT),
  /** Chunks looked for in a tier. */
  TIER_CHUNK_QUERIES(Kind.COUNT),
  /** Chunks of those that it had. */
  TIER_CHUNK_HITS(Kind.COUNT),
  /** Promotions that found no room in host memory. */
  PROMOTION_ALLOCATION_FAILURES(Kind.COUNT),
  /** Share of host memory that writes for a tier hold. */
  TIER_PRIMARY_WRITE_USAGE(Kind.LEVEL),
  /** Share of host memory that reads for a tier hold. */
  TIER_PRIMARY_READ_USAGE(Kind.LEVEL),
  /** Promotion jobs that run. */
  TIER_ACTIVE_PROMOTION_JOBS(Kind.LEVEL),
  /** Cascade jobs that run. */
  TIER_ACTIVE_CASCADE_JOBS(Kind.LEVEL),
  /** Seconds of a promotion job: done (0), failed (1). */
  TIER_PROMOTION_LATENCY(Kind.SAMPLE, "success", "failure"),
  /** Moving average of a tier's store time, seconds a MiB. */
  TIER_STORE_LATENCY_AVERAGE(Kind.LEVEL),
  /** Stores given up because a tier is too slow. */
  TIER_STORES_DROPPED(Kind.COUNT),
  /** Blocks given up because a tier is too slow. */
  TIER_BLOCKS_DROPPED(Kind.COUNT),
  /** What was decided of a block that could be stored (simple connector), in the order of the values. */
  SIMPLE_SAVE_OUTCOMES(Kind.COUNT, "stored", "dropped_cpu_full", "dropped_request_gone", "dropped_null_block",
      "dropped_not_hashed", "skipped_already_cached", "skipped_in_flight"),
  /** Blocks brought back (simple connector). */
  SIMPLE_LOAD_BLOCKS(Kind.COUNT),
  /** Blocks that transfers or hits hold (simple connector). */
  SIMPLE_USED_BLOCKS(Kind.LEVEL),
  /** Blocks in stores that have not ended (simple connector). */
  SIMPLE_PENDING_STORE_BLOCKS(Kind.LEVEL);

  private final Kind kind;
  @SuppressWarnings("ImmutableEnumChecker") // List.of
  private final List<String> labelValues;

  OffloadSeries(Kind kind, String... values) {
    this.kind = kind;
    this.labelValues = List.of(values);
  }

  /** Kinds of reports. */
  public enum Kind {
    /** Adds up. */
    COUNT,
    /** Is observed. */
    SAMPLE,
    /** Is so at present. */
    LEVEL
  }

  /** What a report of it does. */
  public Kind kind() {
    return kind;
  }

  /** Values of its own label in the order of their children; empty if it has none. */
  public List<String> labelValues() {
    return labelValues;
  }
}
