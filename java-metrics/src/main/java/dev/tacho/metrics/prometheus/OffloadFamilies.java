package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.prometheus.MetricFamily.Gate;
import dev.tacho.metrics.prometheus.MetricFamily.Question;
import dev.tacho.metrics.stats.OffloadSeries;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** The part of the {@link MetricCatalog} about offloaded keys and values: a family for each {@link OffloadSeries}. */
final class OffloadFamilies {
  /** The configuration; a child for each tier, or one without that label. */
  static final MetricFamily CONFIG;

  /** The configuration of the simple connector. */
  static final MetricFamily SIMPLE_CONFIG;

  private static final FamilyTable TABLE = new FamilyTable();
  private static final Map<OffloadSeries, MetricFamily> OF = new EnumMap<>(OffloadSeries.class);

  static {
    put(OffloadSeries.LOAD_BYTES, TABLE.counter("vllm:kv_offload_load_bytes").onFirstUse().gate(Gate.OFFLOAD)
        .unit("bytes").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Bytes brought back to the device."));
    put(OffloadSeries.LOAD_TIME, TABLE.counter("vllm:kv_offload_load_time").onFirstUse().gate(Gate.OFFLOAD)
        .unit("seconds").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Seconds that bringing them back took."));
    put(OffloadSeries.LOAD_SIZE, TABLE.histogram("vllm:kv_offload_load_size").buckets(BucketFamily.OFFLOAD_SIZE)
        .onFirstUse().gate(Gate.OFFLOAD).unit("bytes").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Bytes of one transfer to the device."));
    put(OffloadSeries.STORE_BYTES, TABLE.counter("vllm:kv_offload_store_bytes").onFirstUse().gate(Gate.OFFLOAD)
        .unit("bytes").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Bytes put away from the device."));
    put(OffloadSeries.STORE_TIME, TABLE.counter("vllm:kv_offload_store_time").onFirstUse().gate(Gate.OFFLOAD)
        .unit("seconds").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Seconds that putting them away took."));
    put(OffloadSeries.STORE_SIZE, TABLE.histogram("vllm:kv_offload_store_size")
        .buckets(BucketFamily.OFFLOAD_SIZE).onFirstUse().gate(Gate.OFFLOAD).unit("bytes")
        .asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Bytes of one transfer from the device."));
    put(OffloadSeries.LOOKUP_SYNC_DELAY, TABLE.histogram("vllm:kv_offload_lookup_sync_delay_seconds")
        .buckets(BucketFamily.OFFLOAD_LOOKUP).onFirstUse().gate(Gate.OFFLOAD).unit("seconds")
        .asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Time of a look-up call."));
    put(OffloadSeries.LOOKUP_ASYNC_DELAY, TABLE.histogram("vllm:kv_offload_lookup_async_delay_seconds")
        .buckets(BucketFamily.OFFLOAD_DEFERRED_LOOKUP).onFirstUse().gate(Gate.OFFLOAD).unit("seconds")
        .asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Time until a deferred look-up was answered."));
    put(OffloadSeries.ALLOCATION_FAILURE, TABLE.counter("vllm:kv_offload_allocation_failure").onFirstUse()
        .gate(Gate.OFFLOAD).unit("events").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Stores that found no room."));
    put(OffloadSeries.TOTAL_BYTES, TABLE.counter("vllm:kv_offload_total_bytes")
        .by("transfer_type", OffloadSeries.TOTAL_BYTES.labelValues()).gate(Gate.OFFLOAD).unit("bytes")
        .asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Bytes moved, by direction; the same as load and store bytes."));
    put(OffloadSeries.TOTAL_TIME, TABLE.counter("vllm:kv_offload_total_time")
        .by("transfer_type", OffloadSeries.TOTAL_TIME.labelValues()).gate(Gate.OFFLOAD).unit("seconds")
        .asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Seconds of moving, by direction; the same as load and store time."));
    put(OffloadSeries.SIZE, TABLE.histogram("vllm:kv_offload_size")
        .by("transfer_type", OffloadSeries.SIZE.labelValues()).buckets(BucketFamily.OFFLOAD_SIZE).gate(Gate.OFFLOAD)
        .unit("bytes").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Bytes of one transfer, by direction; the same as load and store size."));
    put(OffloadSeries.CPU_CACHE_USAGE, TABLE.gauge("vllm:kv_offload_cpu_cache_usage_perc").onFirstUse()
        .gate(Gate.OFFLOAD).unit("ratio").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Share of the cache in host memory that is used, 1 when all is."));
    put(OffloadSeries.CPU_CACHE_WRITE_USAGE, TABLE.gauge("vllm:kv_offload_cpu_cache_write_usage_perc")
        .onFirstUse().gate(Gate.OFFLOAD).unit("ratio").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Share of the cache in host memory that stores hold."));
    put(OffloadSeries.CPU_CACHE_READ_USAGE, TABLE.gauge("vllm:kv_offload_cpu_cache_read_usage_perc")
        .onFirstUse().gate(Gate.OFFLOAD).unit("ratio").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Share of the cache in host memory that loads hold."));
    put(OffloadSeries.CPU_ALLOCATION_SIZE, TABLE.histogram("vllm:kv_offload_cpu_allocation_size")
        .buckets(BucketFamily.OFFLOAD_BLOCKS).onFirstUse().gate(Gate.OFFLOAD).unit("blocks")
        .asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Blocks that a store asked for."));
    CONFIG = TABLE.gauge("vllm:kv_offload_config_info")
        .labels("model_name", "engine", "cpu_num_chunks", "cpu_blocks_per_chunk", "cpu_kv_cache_size_bytes",
            "cpu_kv_cache_size_tokens", "tier")
        .onFirstUse().gate(Gate.OFFLOAD).unit("always 1").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("How keys and values are offloaded, in labels; one series for each tier.");
    put(OffloadSeries.STORES_SKIPPED, TABLE.counter("vllm:kv_offload_stores_skipped").onFirstUse()
        .gate(Gate.OFFLOAD_THRESHOLD).unit("stores").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Stores left out because their blocks were used too seldom."));
    put(OffloadSeries.TIER_LOOKUP_SYNC_DELAY, TABLE.histogram("vllm:kv_offload_tiering_lookup_sync_delay_seconds")
        .countedByEngine("tier").buckets(BucketFamily.OFFLOAD_LOOKUP).onFirstUse().gate(Gate.OFFLOAD_TIERS)
        .unit("seconds").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Time of a look-up call in a tier."));
    put(OffloadSeries.TIER_LOOKUP_ASYNC_DELAY, TABLE.histogram("vllm:kv_offload_tiering_lookup_async_delay_seconds")
        .countedByEngine("tier").buckets(BucketFamily.OFFLOAD_DEFERRED_LOOKUP).onFirstUse().gate(Gate.OFFLOAD_TIERS)
        .unit("seconds").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Time until a tier answered a deferred look-up."));
    put(OffloadSeries.TIER_READ_BYTES, TABLE.counter("vllm:kv_offload_tiering_read_bytes").countedByEngine("tier")
        .onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("bytes").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Bytes read from a tier."));
    put(OffloadSeries.TIER_READ_TIME, TABLE.counter("vllm:kv_offload_tiering_read_time").countedByEngine("tier")
        .onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("seconds").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Seconds of reading from a tier."));
    put(OffloadSeries.TIER_WRITE_BYTES, TABLE.counter("vllm:kv_offload_tiering_write_bytes").countedByEngine("tier")
        .onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("bytes").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Bytes written to a tier."));
    put(OffloadSeries.TIER_WRITE_TIME, TABLE.counter("vllm:kv_offload_tiering_write_time").countedByEngine("tier")
        .onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("seconds").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Seconds of writing to a tier."));
    put(OffloadSeries.TIER_PROMOTION_JOB_FAILURES, TABLE.counter("vllm:kv_offload_tiering_promotion_job_failures")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("jobs").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Jobs that were to bring chunks up from a tier and failed."));
    put(OffloadSeries.TIER_CASCADE_JOB_FAILURES, TABLE.counter("vllm:kv_offload_tiering_cascade_job_failures")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("jobs").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Jobs that were to pass chunks down to a tier and failed."));
    put(OffloadSeries.TIER_CHUNK_QUERIES, TABLE.counter("vllm:kv_offload_tiering_chunk_queries")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("chunks").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Chunks looked for in a tier."));
    put(OffloadSeries.TIER_CHUNK_HITS, TABLE.counter("vllm:kv_offload_tiering_chunk_hits").countedByEngine("tier")
        .onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("chunks").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Chunks of those that the tier had."));
    put(OffloadSeries.PROMOTION_ALLOCATION_FAILURES,
        TABLE.counter("vllm:kv_offload_tiering_promotion_allocation_failures")
        .onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("events").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Promotions that found no room in host memory."));
    put(OffloadSeries.TIER_PRIMARY_WRITE_USAGE, TABLE.gauge("vllm:kv_offload_tiering_primary_write_usage_perc")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("ratio").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Share of host memory that writes for a tier hold."));
    put(OffloadSeries.TIER_PRIMARY_READ_USAGE, TABLE.gauge("vllm:kv_offload_tiering_primary_read_usage_perc")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("ratio").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Share of host memory that reads for a tier hold."));
    put(OffloadSeries.TIER_ACTIVE_PROMOTION_JOBS, TABLE.gauge("vllm:kv_offload_tiering_active_promotion_jobs")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("jobs").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Jobs that bring chunks up from a tier at present."));
    put(OffloadSeries.TIER_ACTIVE_CASCADE_JOBS, TABLE.gauge("vllm:kv_offload_tiering_active_cascade_jobs")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("jobs").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Jobs that pass chunks down to a tier at present."));
    put(OffloadSeries.TIER_PROMOTION_LATENCY, TABLE.histogram("vllm:kv_offload_tiering_promotion_latency_seconds")
        .countedByEngine("tier").by("result", OffloadSeries.TIER_PROMOTION_LATENCY.labelValues())
        .buckets(BucketFamily.OFFLOAD_PROMOTION).onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("seconds")
        .asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Time of a promotion job, a failed one too, until its end was noticed."));
    put(OffloadSeries.TIER_STORE_LATENCY_AVERAGE,
        TABLE.gauge("vllm:kv_offload_tiering_backpressure_store_latency_ema")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("seconds a MiB").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Moving average of the time that a tier takes to store a MiB."));
    put(OffloadSeries.TIER_STORES_DROPPED, TABLE.counter("vllm:kv_offload_tiering_backpressure_stores_dropped")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("stores").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Stores given up because a tier is too slow."));
    put(OffloadSeries.TIER_BLOCKS_DROPPED, TABLE.counter("vllm:kv_offload_tiering_backpressure_blocks_dropped")
        .countedByEngine("tier").onFirstUse().gate(Gate.OFFLOAD_TIERS).unit("blocks").asks(Question.TRANSFER)
        .moves(Moment.REPORT)
        .help("Blocks given up because a tier is too slow."));
    put(OffloadSeries.SIMPLE_SAVE_OUTCOMES, TABLE.counter("vllm:simple_kv_offload_save_outcomes_total")
        .by("outcome", OffloadSeries.SIMPLE_SAVE_OUTCOMES.labelValues()).onFirstUse().gate(Gate.SIMPLE_OFFLOAD)
        .unit("decisions").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("What was decided of blocks that could be stored."));
    put(OffloadSeries.SIMPLE_LOAD_BLOCKS, TABLE.counter("vllm:simple_kv_offload_load_blocks_total").onFirstUse()
        .gate(Gate.SIMPLE_OFFLOAD).unit("blocks").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Blocks brought back, when a load ended."));
    put(OffloadSeries.SIMPLE_USED_BLOCKS, TABLE.gauge("vllm:simple_kv_offload_used_blocks").onFirstUse()
        .gate(Gate.SIMPLE_OFFLOAD).unit("blocks").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Blocks of the pool that transfers or hits hold."));
    put(OffloadSeries.SIMPLE_PENDING_STORE_BLOCKS, TABLE.gauge("vllm:simple_kv_offload_pending_store_blocks")
        .onFirstUse().gate(Gate.SIMPLE_OFFLOAD).unit("blocks").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("Blocks in stores that have not ended."));
    SIMPLE_CONFIG = TABLE.gauge("vllm:simple_kv_offload_info")
        .labels("model_name", "engine", "backend", "page_cache", "lazy_offload", "capacity_blocks").onFirstUse()
        .gate(Gate.SIMPLE_OFFLOAD).unit("always 1").asks(Question.TRANSFER).moves(Moment.REPORT)
        .help("How the simple connector offloads, in labels.");
  }

  private OffloadFamilies() {}

  /** The rows, in the order of the exposition. */
  static List<MetricFamily> rows() {
    return TABLE.rows();
  }

  /** The family of a series. */
  static MetricFamily of(OffloadSeries series) {
    return Objects.requireNonNull(OF.get(series));
  }

  private static void put(OffloadSeries series, MetricFamily family) {
    OF.put(series, family);
  }
}
