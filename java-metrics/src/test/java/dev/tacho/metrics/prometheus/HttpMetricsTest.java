package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.collector.MetricsCollector;
import java.util.List;
import org.junit.jupiter.api.Test;

class HttpMetricsTest {
  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());

  @Test
  void fiveFamiliesInOrderWithGroupedStatus() {
    HttpMetrics http = HttpMetrics.in(registry);
    http.answered("POST", "/v1/completions", 200, 300_000_000, 120, 0);
    http.answered("POST", "/v1/completions", 503, 1_000_000, 80, 40);
    http.answered("GET", "/metrics", 200, 1_000_000, 0, 5000);
    List<String> lines = registry.exposition(ExpositionFormat.TEXT_0_0_4).lines().toList();
    assertThat(lines.stream().filter(l -> l.startsWith("# TYPE"))).containsExactly(
        "# TYPE http_requests_total counter",
        "# TYPE http_request_size_bytes summary",
        "# TYPE http_response_size_bytes summary",
        "# TYPE http_request_duration_highr_seconds histogram",
        "# TYPE http_request_duration_seconds histogram");
    assertThat(lines).contains(
        "http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"2xx\"} 1.0",
        "http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"5xx\"} 1.0",
        "http_request_size_bytes_sum{handler=\"/v1/completions\"} 200.0",
        "http_response_size_bytes_count{handler=\"/v1/completions\"} 2.0",
        "http_request_duration_highr_seconds_bucket{le=\"0.25\"} 1.0",
        "http_request_duration_highr_seconds_bucket{le=\"0.5\"} 2.0",
        "http_request_duration_seconds_bucket{handler=\"/v1/completions\",le=\"1.0\",method=\"POST\"} 2.0");
    assertThat(lines).noneMatch(l -> l.contains("/metrics") || l.contains("_created"));
    assertThat(HttpMetrics.in(registry)).isSameAs(http);
  }

  @Test
  void callsOfTheToolParserAreThereFromTheStart() {
    ToolParserMetrics parser = new ToolParserMetrics(registry, "m");
    parser.called(true, true, "chat_completions");
    parser.called(false, false, "completions");
    List<String> samples = registry.exposition(ExpositionFormat.TEXT_0_0_4).lines()
        .filter(l -> l.startsWith(ToolParserMetrics.NAME + "{")).toList();
    assertThat(samples).hasSize(12).contains(
        ToolParserMetrics.NAME
            + "{mode=\"streaming\",model_name=\"m\",outcome=\"tool_call\",request_type=\"chat_completions\"} 1.0",
        ToolParserMetrics.NAME
            + "{mode=\"non_streaming\",model_name=\"m\",outcome=\"no_tool_call\",request_type=\"other\"} 1.0");
  }
}
