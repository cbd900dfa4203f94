package dev.tacho.metrics.prometheus;

import java.util.LinkedHashMap;
import java.util.Map;

/** The queries of docs/metrics.md, by the question that each answers; each gives a result once there was traffic. */
public final class PromqlRecipes {
  private PromqlRecipes() {}

  /** Every recipe, in the order of the page. */
  public static Map<String, String> all() {
    Map<String, String> recipes = new LinkedHashMap<>();
    quantiles(recipes, "Time to first token", "vllm:time_to_first_token_seconds");
    quantiles(recipes, "Inter-token latency", "vllm:inter_token_latency_seconds");
    quantiles(recipes, "End-to-end latency", "vllm:e2e_request_latency_seconds");
    recipes.put("Mean time to first token that the front end took, by engine (likewise queue, prefill, delivery)",
        "sum by (engine) (rate(tacho:request_frontend_seconds_sum[5m]))"
            + " / sum by (engine) (rate(tacho:request_frontend_seconds_count[5m]))");
    recipes.put("Mean time to first token that the delivery took, by engine",
        "sum by (engine) (rate(tacho:output_delivery_seconds_sum{output=\"first\"}[5m]))"
            + " / sum by (engine) (rate(tacho:output_delivery_seconds_count{output=\"first\"}[5m]))");
    recipes.put("Generated tokens a second", "sum by (model_name) (rate(vllm:generation_tokens_total[5m]))");
    recipes.put("Prompt tokens a second", "sum by (model_name) (rate(vllm:prompt_tokens_total[5m]))");
    recipes.put("Mean time in the queue, by engine", "sum by (engine) (rate(vllm:request_queue_time_seconds_sum[5m]))"
        + " / sum by (engine) (rate(vllm:request_queue_time_seconds_count[5m]))");
    recipes.put("Waiting sequences, as a ratio of all open ones", "sum(vllm:num_requests_waiting)"
        + " / clamp_min(sum(vllm:num_requests_waiting) + sum(vllm:num_requests_running), 1)");
    recipes.put("Why sequences wait", "sum by (reason) (vllm:num_requests_waiting_by_reason)");
    recipes.put("Prefix cache hit rate", "sum(rate(vllm:prefix_cache_hits_total[5m]))"
        + " / sum(rate(vllm:prefix_cache_queries_total[5m]))");
    recipes.put("Fullest KV cache of the last five minutes, by engine",
        "max by (engine) (max_over_time(vllm:kv_cache_usage_perc[5m]))");
    recipes.put("KV cache usage over engines (a sum would overstate)",
        "avg by (model_name) (vllm:kv_cache_usage_perc)");
    recipes.put("Preemptions a second, by engine", "sum by (engine) (rate(vllm:num_preemptions_total[5m]))");
    recipes.put("Ends a second, by reason", "sum by (finished_reason) (rate(vllm:request_success_total[5m]))");
    recipes.put("Refused requests a second, by limit", "sum by (reason) (rate(vllm:admission_rejections_total[5m]))");
    recipes.put("Estimated TFLOP/s of a device",
        "avg by (engine) (rate(vllm:estimated_flops_per_gpu_total[5m])) / 1e12");
    recipes.put("Estimated memory traffic of a device, GB/s",
        "avg by (engine) (rate(vllm:estimated_read_bytes_per_gpu_total[5m])"
            + " + rate(vllm:estimated_write_bytes_per_gpu_total[5m])) / 1e9");
    recipes.put("Model FLOPs utilisation (MFU), counted by the kernels", "avg by (engine) (tacho:mfu_ratio)");
    recipes.put("Memory bandwidth utilisation (MBU), counted by the kernels", "avg by (engine) (tacho:mbu_ratio)");
    recipes.put("Estimated over counted operations", "sum by (engine) (rate(vllm:estimated_flops_per_gpu_total[5m]))"
        + " / sum by (engine) (rate(tacho:counted_flops_total[5m]))");
    recipes.put("Counted GB/s", "sum by (engine) (rate(tacho:counted_read_bytes_total[5m])"
        + " + rate(tacho:counted_write_bytes_total[5m])) / 1e9");
    recipes.put("Model FLOPs utilisation (MFU), estimated, for a device of 2 TFLOP/s at its peak",
        "avg by (engine) (rate(vllm:estimated_flops_per_gpu_total[5m])) / 2e12");
    recipes.put("KV usage beside the size of the cache",
        "vllm:kv_cache_usage_perc * on (engine) group_left (block_size, num_gpu_blocks) vllm:cache_config_info");
    recipes.put("Draft acceptance rate", "sum(rate(vllm:spec_decode_num_accepted_tokens_total[5m]))"
        + " / sum(rate(vllm:spec_decode_num_draft_tokens_total[5m]))");
    recipes.put("Mean acceptance length", "1 + sum(rate(vllm:spec_decode_num_accepted_tokens_total[5m]))"
        + " / sum(rate(vllm:spec_decode_num_drafts_total[5m]))");
    recipes.put("Acceptance by position",
        "sum by (position) (rate(vllm:spec_decode_num_accepted_tokens_per_pos_total[5m]))"
        + " / ignoring (position) group_left sum(rate(vllm:spec_decode_num_drafts_total[5m]))");
    recipes.put("Life of a KV block against its idle time at the end",
        "sum(rate(vllm:kv_block_idle_before_evict_seconds_sum[1h]))"
            + " / sum(rate(vllm:kv_block_lifetime_seconds_sum[1h]))");
    recipes.put("Restarts of the process in an hour", "changes(process_start_time_seconds[1h])");
    recipes.put("Events that the metrics lost", "sum by (engine) (increase(tacho:events_lost_total[1h]))");
    recipes.put("Engines by state", "sum by (state) (tacho:engine_state)");
    return recipes;
  }

  private static void quantiles(Map<String, String> recipes, String what, String family) {
    for (String p : new String[] {"95", "99"}) {
      recipes.put(what + ", p" + p + " by engine",
          "histogram_quantile(0." + p + ", sum by (engine, le) (rate(" + family + "_bucket[5m])))");
    }
  }
}
