package dev.tacho.metrics.golden;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.perf.ExpertShape;
import dev.tacho.metrics.perf.LatentShape;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.perf.WorkEstimate;
import dev.tacho.metrics.perf.WorkSink;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The computed work estimates, to the last digit and part by part. */
class MfuGoldenTest {
  @TestFactory
  Stream<DynamicTest> cases() {
    return GoldenFile.cases("mfu").map(c -> DynamicTest.dynamicTest(c.get("id").asText(), () -> run(c)));
  }

  private static void run(JsonNode golden) {
    ModelShape model = model(golden);
    StepShape step = new StepShape(model.slidingWindow());
    JsonNode batch = golden.get("input").get("batch");
    batch.get("new_requests").forEach(r -> add(step, true, r));
    batch.get("cached_requests").forEach(r -> add(step, false, r));
    JsonNode context = golden.get("context");
    assertThat(step.tokens()).isEqualTo(context.get("total_num_tokens").asLong());
    assertThat(step.logitTokens()).isEqualTo(context.get("num_logits_tokens").asLong());

    Parts parts = new Parts();
    new PerfEstimator(model).estimate(step, parts);
    JsonNode expected = golden.get("expected_per_gpu");
    assertThat(parts.flops).isEqualTo(map(expected.get("flops_breakdown")));
    assertThat(parts.read).isEqualTo(map(expected.get("read_bytes_breakdown")));
    assertThat(parts.written).isEqualTo(map(expected.get("write_bytes_breakdown")));
    compare(model, step, expected);
    compare(model.withParallelism(1, 1, 1), step, golden.get("expected_whole_model"));
  }

  private static void compare(ModelShape model, StepShape step, JsonNode expected) {
    WorkEstimate estimate = new WorkEstimate();
    new PerfEstimator(model).estimate(step, estimate);
    assertThat(estimate.flops()).isEqualTo(expected.get("flops").longValue());
    assertThat(estimate.readBytes()).isEqualTo(expected.get("read_bytes").longValue());
    assertThat(estimate.writeBytes()).isEqualTo(expected.get("write_bytes").longValue());
  }

  private static void add(StepShape step, boolean isNew, JsonNode request) {
    step.add(isNew, request.get("num_scheduled_tokens").asInt(), request.get("num_computed_tokens").asLong());
  }

  private static ModelShape model(JsonNode golden) {
    JsonNode input = golden.get("input");
    JsonNode config = input.get("hf_text_config");
    JsonNode resolved = input.get("resolved");
    boolean latent = resolved.get("is_mla").asBoolean();
    JsonNode attention = golden.get("components").path(latent ? "mla_attn" : "attn");
    JsonNode feedForward = golden.get("components").path("ffn");
    JsonNode unembed = golden.get("components").get("unembed");
    JsonNode parallel = input.get("parallel");
    int hidden = resolved.get("hidden_size").asInt();
    return new ModelShape(
        resolved.get("num_hidden_layers").asInt(),
        hidden,
        resolved.get("num_attention_heads").asInt(),
        resolved.get("num_key_value_heads").asInt(),
        resolved.get("head_dim").asInt(),
        config.path("intermediate_size").asInt(4 * hidden),
        resolved.get("vocab_size").asInt(),
        unembed.get("activation_byte_size").asInt(),
        attention.path("weight_byte_size").asDouble(0),
        attention.path("cache_byte_size").asInt(1),
        attention.path("sliding_window").asLong(0),
        attention.path("num_swa_layers").asInt(0),
        parallel.get("tensor_parallel_size").asInt(),
        parallel.get("pipeline_parallel_size").asInt(),
        parallel.get("data_parallel_size").asInt(),
        latent ? latent(config) : null,
        experts(resolved, config, feedForward),
        parallel.get("enable_expert_parallel").asBoolean());
  }

  private static LatentShape latent(JsonNode config) {
    return new LatentShape(config.path("q_lora_rank").asInt(0), config.get("kv_lora_rank").asInt(),
        config.get("qk_nope_head_dim").asInt(), config.get("qk_rope_head_dim").asInt(),
        config.get("v_head_dim").asInt());
  }

  /** Without a feed-forward component too little is known of the experts, if there are any. */
  private static ExpertShape experts(JsonNode resolved, JsonNode config, JsonNode feedForward) {
    if (feedForward.isMissingNode()) {
      return resolved.get("num_experts").asInt() == 0 ? ExpertShape.NONE
          : new ExpertShape(resolved.get("num_experts").asInt(), 0, 0, 0, resolved.get("num_hidden_layers").asInt());
    }
    return new ExpertShape(feedForward.get("num_experts").asInt(), feedForward.get("num_experts_per_tok").asInt(),
        config.path("moe_intermediate_size").asInt(feedForward.get("moe_intermediate_size").asInt()),
        feedForward.get("num_shared_experts").asInt(), feedForward.get("num_moe_layers").asInt());
  }

  private static Map<String, Long> map(JsonNode breakdown) {
    Map<String, Long> parts = new TreeMap<>();
    breakdown.properties().forEach(e -> parts.put(e.getKey(), e.getValue().longValue()));
    return parts;
  }

  /** Keeps each part. */
  private static final class Parts implements WorkSink {
    final Map<String, Long> flops = new TreeMap<>();
    final Map<String, Long> read = new TreeMap<>();
    final Map<String, Long> written = new TreeMap<>();

    @Override
    public void flops(String part, long operations) {
      flops.put(part, operations);
    }

    @Override
    public void read(String part, long bytes) {
      read.put(part, bytes);
    }

    @Override
    public void write(String part, long bytes) {
      written.put(part, bytes);
    }
  }
}
