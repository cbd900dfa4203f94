package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.page.EngineLifecycle;
import dev.tacho.metrics.prometheus.MetricFamily.Gate;
import dev.tacho.metrics.prometheus.MetricFamily.Question;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * The one table of the families that engines publish, in the order of the exposition. The names that begin with {@code
 * vllm:} follow the release {@value #FOLLOWS} of vLLM, to the bucket; those that begin with {@code tacho:} are ours.
 */
public final class MetricCatalog {
  /** The vLLM release whose names, labels, buckets and meanings the catalog follows. */
  public static final String FOLLOWS = "0.33.0";

  private static final FamilyTable TABLE = new FamilyTable();

  static final MetricFamily ESTIMATED_FLOPS = TABLE.counter("vllm:estimated_flops_per_gpu_total")
      .unit("floating point operations").asks(Question.RESOURCES).moves(Moment.SNAPSHOT)
      .help("Estimated floating point operations of one device; moves with MFU metrics on.");
  static final MetricFamily ESTIMATED_READ_BYTES = TABLE.counter("vllm:estimated_read_bytes_per_gpu_total")
      .unit("bytes").asks(Question.RESOURCES).moves(Moment.SNAPSHOT)
      .help("Estimated bytes that one device read from memory; moves with MFU metrics on.");
  static final MetricFamily ESTIMATED_WRITE_BYTES = TABLE.counter("vllm:estimated_write_bytes_per_gpu_total")
      .unit("bytes").asks(Question.RESOURCES).moves(Moment.SNAPSHOT)
      .help("Estimated bytes that one device wrote to memory; moves with MFU metrics on.");
  static final MetricFamily RUNNING = TABLE.gauge("vllm:num_requests_running").unit("requests").asks(Question.QUEUE)
      .moves(Moment.SNAPSHOT)
      .help("Sequences that the scheduler has in its running list.");
  static final MetricFamily WAITING = TABLE.gauge("vllm:num_requests_waiting").unit("requests").asks(Question.QUEUE)
      .moves(Moment.SNAPSHOT)
      .help("Sequences that wait to be scheduled, whatever the reason.");
  static final MetricFamily WAITING_BY_REASON = TABLE.gauge("vllm:num_requests_waiting_by_reason")
      .by("reason", "capacity", "deferred").unit("requests").asks(Question.QUEUE).moves(Moment.SNAPSHOT)
      .help("Waiting sequences, by whether capacity or a passing constraint holds them up.");
  static final MetricFamily KV_FETCH_BY_STAGE = TABLE.gauge("vllm:num_requests_kv_fetch_by_stage")
      .by("stage", "waiting_to_start", "in_progress", "completed_waiting").gate(Gate.KV_CONSUMER).unit("requests")
      .asks(Question.QUEUE).moves(Moment.SNAPSHOT)
      .help("Sequences whose keys and values a connector fetches, by how far it is.");
  static final MetricFamily SLEEP_STATE = TABLE.gauge("vllm:engine_sleep_state")
      .by("sleep_state", "awake", "weights_offloaded", "discard_all").unit("0 or 1").asks(Question.RESOURCES)
      .moves(Moment.LIFECYCLE)
      .help("Whether the engine is awake or has given memory back; 1 for the state it is in.");
  static final MetricFamily KV_CACHE_USAGE = TABLE.gauge("vllm:kv_cache_usage_perc").unit("ratio")
      .asks(Question.RESOURCES).moves(Moment.SNAPSHOT)
      .help("Share of the KV cache blocks that sequences refer to, 1 when all are.");
  static final MetricFamily CORRUPTED = TABLE.counter("vllm:corrupted_requests").gate(Gate.CORRUPTED)
      .unit("requests").asks(Question.RESOURCES).moves(Moment.FINISH)
      .help("Finished sequences with an output computed from logits with a NaN.");
  static final MetricFamily WATERMARKS = TABLE.counter("vllm:watermark_requests")
      .by("status", "watermarked", "skipped", "not_watermarked").gate(Gate.WATERMARK).unit("requests")
      .asks(Question.THROUGHPUT).moves(Moment.FINISH)
      .help("Finished sequences by what became of their text watermark.");
  static final MetricFamily PREFIX_QUERIES = TABLE.counter("vllm:prefix_cache_queries").unit("tokens")
      .asks(Question.CACHE).moves(Moment.ADMISSION)
      .help("Tokens looked up in the prefix cache by sequences when they were admitted.");
  static final MetricFamily PREFIX_HITS = TABLE.counter("vllm:prefix_cache_hits").unit("tokens").asks(Question.CACHE)
      .moves(Moment.ADMISSION)
      .help("Tokens of those that the prefix cache held.");
  static final MetricFamily EXTERNAL_PREFIX_QUERIES = TABLE.counter("vllm:external_prefix_cache_queries")
      .unit("tokens").asks(Question.CACHE).moves(Moment.REPORT)
      .help("Tokens looked up in a KV connector after the prefix cache; 0 without a connector.");
  static final MetricFamily EXTERNAL_PREFIX_HITS = TABLE.counter("vllm:external_prefix_cache_hits").unit("tokens")
      .asks(Question.CACHE).moves(Moment.REPORT)
      .help("Tokens of those that the connector supplied.");
  static final MetricFamily MM_QUERIES = TABLE.counter("vllm:mm_cache_queries").unit("items").asks(Question.CACHE)
      .moves(Moment.NEVER)
      .help("Items looked up in the multi-modal cache; 0 for a text model.");
  static final MetricFamily MM_HITS = TABLE.counter("vllm:mm_cache_hits").unit("items").asks(Question.CACHE)
      .moves(Moment.NEVER)
      .help("Items of those that the multi-modal cache held.");
  static final MetricFamily PREEMPTIONS = TABLE.counter("vllm:num_preemptions").unit("events").asks(Question.QUEUE)
      .moves(Moment.PREEMPTION)
      .help("Times that a running sequence lost its blocks to another.");
  static final MetricFamily PROMPT_TOKENS = TABLE.counter("vllm:prompt_tokens").unit("tokens")
      .asks(Question.THROUGHPUT).moves(Moment.FIRST_OUTPUT)
      .help("Prompt tokens of sequences that gave a first output, cached ones included.");
  static final MetricFamily PROMPT_TOKENS_BY_SOURCE = TABLE.counter("vllm:prompt_tokens_by_source")
      .by("source", "local_compute", "local_cache_hit", "external_kv_transfer").unit("tokens").asks(Question.CACHE)
      .moves(Moment.FIRST_OUTPUT)
      .help("Prompt tokens by where their keys and values came from.");
  static final MetricFamily PROMPT_TOKENS_CACHED = TABLE.counter("vllm:prompt_tokens_cached").unit("tokens")
      .asks(Question.CACHE).moves(Moment.FIRST_OUTPUT)
      .help("Prompt tokens that were not computed.");
  static final MetricFamily CACHED_BY_SOURCE = TABLE.counter("vllm:prompt_tokens_cached_by_source")
      .by("source", "device", "host", "p2p", "disk", "external_unspecified").unit("tokens").asks(Question.CACHE)
      .moves(Moment.ADMISSION)
      .help("Prompt tokens that were not computed, by the memory they were found in; counted at admission.");
  static final MetricFamily GENERATION_TOKENS = TABLE.counter("vllm:generation_tokens").unit("tokens")
      .asks(Question.THROUGHPUT).moves(Moment.OUTPUT)
      .help("Tokens generated.");
  static final MetricFamily REQUEST_SUCCESS = TABLE.counter("vllm:request_success")
      .by("finished_reason", Arrays.stream(FinishReason.values()).map(FinishReason::label).toList()).unit("requests")
      .asks(Question.THROUGHPUT).moves(Moment.END)
      .help("Sequences that ended, by reason, aborted and failed ones included.");
  static final MetricFamily ADMISSION_REJECTIONS = TABLE.counter("vllm:admission_rejections").labels("model_name")
      .by("reason", "max_num_queued_reqs", "max_num_queued_tokens").unit("requests").asks(Question.QUEUE)
      .moves(Moment.REJECTION)
      .help("Requests refused at the door, by the limit that they met.");
  static final MetricFamily REQUEST_PROMPT_TOKENS = TABLE.histogram("vllm:request_prompt_tokens")
      .buckets(BucketFamily.REQUEST_TOKENS).unit("tokens").asks(Question.THROUGHPUT).moves(Moment.FINISH)
      .help("Length of the prompt of a finished sequence.");
  static final MetricFamily REQUEST_GENERATION_TOKENS = TABLE.histogram("vllm:request_generation_tokens")
      .buckets(BucketFamily.REQUEST_TOKENS).unit("tokens").asks(Question.THROUGHPUT).moves(Moment.FINISH)
      .help("Tokens that a finished sequence generated.");
  static final MetricFamily ITERATION_TOKENS = TABLE.histogram("vllm:iteration_tokens_total")
      .buckets(BucketFamily.ITERATION_TOKENS).unit("tokens").asks(Question.THROUGHPUT).moves(Moment.OUTPUT)
      .help("Computed prompt tokens and generated tokens of a step that gave outputs.");
  static final MetricFamily MAX_GENERATION_TOKENS = TABLE.histogram("vllm:request_max_num_generation_tokens")
      .buckets(BucketFamily.REQUEST_TOKENS).unit("tokens").asks(Question.THROUGHPUT).moves(Moment.PARENT_FINISH)
      .help("The most tokens that one of the n sequences of a request generated.");
  static final MetricFamily PARAMS_N = TABLE.histogram("vllm:request_params_n")
      .buckets(BucketFamily.REQUEST_PARAMS_N).unit("sequences").asks(Question.THROUGHPUT).moves(Moment.PARENT_FINISH)
      .help("Sequences asked for by a request (n).");
  static final MetricFamily PARAMS_MAX_TOKENS = TABLE.histogram("vllm:request_params_max_tokens")
      .buckets(BucketFamily.REQUEST_TOKENS).unit("tokens").asks(Question.THROUGHPUT).moves(Moment.FINISH)
      .help("Limit of generated tokens that a request gave.");
  static final MetricFamily TIME_TO_FIRST_TOKEN = TABLE.histogram("vllm:time_to_first_token_seconds")
      .buckets(BucketFamily.TIME_TO_FIRST_TOKEN).unit("seconds").asks(Question.LATENCY).moves(Moment.FIRST_OUTPUT)
      .help("Arrival of a request to the pick-up of the first output of a sequence of it.");
  static final MetricFamily INTER_TOKEN_LATENCY = TABLE.histogram("vllm:inter_token_latency_seconds")
      .buckets(BucketFamily.INTER_TOKEN_LATENCY).unit("seconds").asks(Question.LATENCY).moves(Moment.LATER_OUTPUT)
      .help("Time from one output of a sequence to the next, however many tokens it carries.");
  static final MetricFamily TIME_PER_OUTPUT_TOKEN = TABLE.histogram("vllm:request_time_per_output_token_seconds")
      .buckets(BucketFamily.INTER_TOKEN_LATENCY).unit("seconds").asks(Question.LATENCY).moves(Moment.FINISH)
      .help("Decode time of a finished sequence for each token after its first.");
  static final MetricFamily E2E_LATENCY = TABLE.histogram("vllm:e2e_request_latency_seconds")
      .buckets(BucketFamily.REQUEST_LATENCY).unit("seconds").asks(Question.LATENCY).moves(Moment.FINISH)
      .help("Arrival of a request to the pick-up of the last output of a sequence of it.");
  static final MetricFamily QUEUE_TIME = TABLE.histogram("vllm:request_queue_time_seconds")
      .buckets(BucketFamily.REQUEST_LATENCY).unit("seconds").asks(Question.QUEUE).moves(Moment.FINISH)
      .help("Time that a finished sequence waited before it was first scheduled.");
  static final MetricFamily INFERENCE_TIME = TABLE.histogram("vllm:request_inference_time_seconds")
      .buckets(BucketFamily.REQUEST_LATENCY).unit("seconds").asks(Question.LATENCY).moves(Moment.FINISH)
      .help("Time of a finished sequence from first scheduled to last output.");
  static final MetricFamily PREFILL_TIME = TABLE.histogram("vllm:request_prefill_time_seconds")
      .buckets(BucketFamily.REQUEST_LATENCY).unit("seconds").asks(Question.LATENCY).moves(Moment.FINISH)
      .help("Time of a finished sequence from first scheduled to first output.");
  static final MetricFamily DECODE_TIME = TABLE.histogram("vllm:request_decode_time_seconds")
      .buckets(BucketFamily.REQUEST_LATENCY).unit("seconds").asks(Question.LATENCY).moves(Moment.FINISH)
      .help("Time of a finished sequence from first to last output.");
  static final MetricFamily REQUEST_PREEMPTIONS = TABLE.histogram("vllm:request_num_preemptions")
      .buckets(BucketFamily.REQUEST_NUM_PREEMPTIONS).unit("events").asks(Question.QUEUE).moves(Moment.FINISH)
      .help("Preemptions of a finished sequence.");
  static final MetricFamily PREFILL_KV_COMPUTED = TABLE.histogram("vllm:request_prefill_kv_computed_tokens")
      .buckets(BucketFamily.REQUEST_TOKENS).unit("tokens").asks(Question.CACHE).moves(Moment.FINISH)
      .help("Prompt tokens of a finished sequence that were computed.");
  static final MetricFamily BLOCK_LIFETIME = TABLE.histogram("vllm:kv_block_lifetime_seconds")
      .buckets(BucketFamily.KV_CACHE_RESIDENCY).gate(Gate.RESIDENCY).unit("seconds").asks(Question.CACHE)
      .moves(Moment.EVICTION)
      .help("Allocation of a sampled KV block to its eviction.");
  static final MetricFamily BLOCK_IDLE = TABLE.histogram("vllm:kv_block_idle_before_evict_seconds")
      .buckets(BucketFamily.KV_CACHE_RESIDENCY).gate(Gate.RESIDENCY).unit("seconds").asks(Question.CACHE)
      .moves(Moment.EVICTION)
      .help("Last use of a sampled KV block to its eviction.");
  static final MetricFamily BLOCK_REUSE_GAP = TABLE.histogram("vllm:kv_block_reuse_gap_seconds")
      .buckets(BucketFamily.KV_CACHE_RESIDENCY).gate(Gate.RESIDENCY).unit("seconds").asks(Question.CACHE)
      .moves(Moment.EVICTION)
      .help("Time between two uses of a sampled KV block, of its last four.");
  static final MetricFamily LORA_REQUESTS = TABLE.gauge("vllm:lora_requests_info")
      .labels("max_lora", "waiting_lora_adapters", "running_lora_adapters").gate(Gate.LORA).unit("unix seconds")
      .asks(Question.QUEUE).moves(Moment.SNAPSHOT)
      .help("Adapters that open requests use, in both labels; the value is when that was last so.");
  static final MetricFamily CACHE_CONFIG = TABLE.gauge("vllm:cache_config_info").labels("engine")
      .gate(Gate.CACHE_CONFIG).unit("always 1").asks(Question.RESOURCES).moves(Moment.JOIN)
      .help("The cache configuration of an engine, in labels.");
  static final MetricFamily ENGINE_STATE = TABLE.gauge("tacho:engine_state")
      .by("state", Arrays.stream(EngineLifecycle.values()).map(EngineLifecycle::label).toList()).gate(Gate.ALWAYS)
      .unit("0 or 1").asks(Question.RESOURCES).moves(Moment.LIFECYCLE)
      .help("State of the engine; 1 for the state it is in.");
  static final MetricFamily REQUESTS_ACCEPTED = TABLE.counter("tacho:requests_accepted_total").unit("requests")
      .asks(Question.QUEUE).moves(Moment.ARRIVAL)
      .help("Sequences that entered the scheduler; in every scrape, less those that ended, as many as run and wait.");
  static final MetricFamily OLDEST_RUNNING = TABLE.gauge("tacho:oldest_running_seconds").unit("seconds")
      .asks(Question.LATENCY).moves(Moment.DRAIN)
      .help("Time since the first step of the open sequence that was scheduled first; 0 if there is none.");
  static final MetricFamily OLDEST_WAITING = TABLE.gauge("tacho:oldest_waiting_seconds").unit("seconds")
      .asks(Question.QUEUE).moves(Moment.DRAIN)
      .help("Longest time that a waiting sequence has waited since it was queued or last preempted; 0 if none waits.");
  static final MetricFamily SECONDS_SINCE_LAST_STEP = TABLE.gauge("tacho:seconds_since_last_step").unit("seconds")
      .asks(Question.RESOURCES).moves(Moment.DRAIN)
      .help("Time since the last step built its outputs; 0 before the first step.");
  static final MetricFamily METRICS_EVENTS = TABLE.counter("tacho:metrics_events_total").unit("events")
      .asks(Question.METRICS).moves(Moment.DRAIN)
      .help("Events that the collector has read.");
  static final MetricFamily RECORD_SECONDS = TABLE.counter("tacho:metrics_record_seconds_total").unit("seconds")
      .asks(Question.METRICS).moves(Moment.DRAIN)
      .help("Estimated time that the engine's threads spent writing events: their number times what writing one cost in"
          + " a short trial in this process.");
  static final MetricFamily DRAIN_SECONDS = TABLE.counter("tacho:metrics_drain_seconds_total").unit("seconds")
      .asks(Question.METRICS).moves(Moment.DRAIN)
      .help("Time spent reading events and bringing the published values up to date, outside the engine's threads.");
  static final MetricFamily RING_FULL = TABLE.counter("tacho:ring_full_total").unit("events").asks(Question.METRICS)
      .moves(Moment.DRAIN)
      .help("Times that an event ring was full and had to grow or drop.");
  static final MetricFamily EVENTS_LOST = TABLE.counter("tacho:events_lost_total").unit("events")
      .asks(Question.METRICS).moves(Moment.DRAIN)
      .help("Events dropped because nobody drained the ring in time.");
  static final MetricFamily COLLECTOR_RESTARTS = TABLE.counter("tacho:collector_restarts_total").unit("restarts")
      .asks(Question.METRICS).moves(Moment.DRAIN)
      .help("Times that the collector of an engine's events failed and began anew.");
  static final MetricFamily LOGGER_LAG = TABLE.gauge("tacho:stat_logger_lag").unit("calls").asks(Question.METRICS)
      .moves(Moment.DRAIN)
      .help("Calls that wait for the loggers that were plugged in.");
  static final MetricFamily LOGGER_DROPPED = TABLE.counter("tacho:stat_logger_dropped_total").unit("calls")
      .asks(Question.METRICS).moves(Moment.DRAIN)
      .help("Calls to loggers that were plugged in, dropped because too many waited.");

  private static final List<MetricFamily> ALL =
      Stream.of(FeatureFamilies.rows(), OffloadFamilies.rows(), TABLE.rows(), OwnFamilies.rows())
          .flatMap(List::stream).toList();

  private MetricCatalog() {}

  /** Every family, in the order of the exposition. */
  public static List<MetricFamily> families() {
    return ALL;
  }
}
