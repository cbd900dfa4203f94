package dev.tacho.metrics.golden;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.perf.ModelShapeConfig;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.perf.WorkEstimate;
import dev.tacho.metrics.perf.WorkSink;
import java.util.List;
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

  /** The shape from the configuration alone; sizes that its class has as defaults come from what it resolved to. */
  private static ModelShape model(JsonNode golden) {
    JsonNode input = golden.get("input");
    JsonNode resolved = input.get("resolved");
    Map<String, Object> config = new TreeMap<>(GoldenStats.map(input.get("hf_text_config")));
    for (String name : List.of("vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers",
        "num_key_value_heads", "head_dim", "num_experts", "num_experts_per_tok")) {
      config.putIfAbsent(name, resolved.get(name).asInt());
    }
    JsonNode parallel = input.get("parallel");
    return new ModelShapeConfig(config)
        .shape(input.get("model_dtype").asText(), input.get("kv_cache_dtype").asText(),
            input.get("quant_method").isNull() ? null : input.get("quant_method").asText(),
            parallel.get("enable_expert_parallel").asBoolean(),
            resolved.get("disable_sliding_window").asBoolean() || resolved.get("sliding_window").isNull())
        .withParallelism(parallel.get("tensor_parallel_size").asInt(), parallel.get("pipeline_parallel_size").asInt(),
            parallel.get("data_parallel_size").asInt());
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
