package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.prometheus.OperationMetrics.Routes;
import org.junit.jupiter.api.Test;

class OperationMetricsTest {
  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());

  @Test
  void familiesComeWithTheFirstCallAndCountItWhenItEnds() {
    assertThat(text()).doesNotContain("sleep_mode");
    OperationMetrics.Call call = OperationMetrics.begin(registry, Routes.SLEEP_MODE, "sleep");
    assertThat(text()).contains("vllm:sleep_mode_operations_in_flight{operation=\"sleep\"} 1.0\n")
        .doesNotContain("operation_duration_seconds_count").doesNotContain("rl_weight_update");
    call.close();
    OperationMetrics.begin(registry, Routes.SLEEP_MODE, "wake").close();
    assertThat(text()).contains("vllm:sleep_mode_operations_in_flight{operation=\"sleep\"} 0.0\n")
        .contains("vllm:sleep_mode_operation_duration_seconds_count{operation=\"sleep\"} 1.0\n")
        .contains("vllm:sleep_mode_operation_duration_seconds_count{operation=\"wake\"} 1.0\n")
        .contains("vllm:sleep_mode_operation_duration_seconds_bucket{le=\"600.0\",operation=\"wake\"} 1.0\n");
    OperationMetrics.begin(registry, Routes.WEIGHT_UPDATE, "update").close();
    assertThat(text()).contains("vllm:rl_weight_update_operation_duration_seconds_count{operation=\"update\"} 1.0\n");
  }

  @Test
  void anOperationOfAnotherNameIsRefused() {
    assertThatThrownBy(() -> OperationMetrics.begin(registry, Routes.SLEEP_MODE, "/nap"))
        .isInstanceOf(IllegalArgumentException.class).hasMessageContaining("/nap")
        .hasMessageContaining("release_kv_cache_memory");
  }

  private String text() {
    return registry.exposition(ExpositionFormat.TEXT_0_0_4);
  }
}
