package dev.tacho.metrics.prometheus;

import io.prometheus.client.Counter;
import java.util.List;

/**
 * The family of a server's tool parser, as a guest of a registry: one call for each choice, or for each delta of a
 * stream. Every combination of labels is there from the start. Any thread.
 */
public final class ToolParserMetrics {
  /** Name of the family's samples. */
  public static final String NAME = "vllm:tool_call_parser_invocations_total";

  private static final List<String> REQUEST_TYPES = List.of("chat_completions", "responses", "other");

  private final String modelName;
  private final Counter calls;

  /**
   * Registers the family; once for each registry.
   *
   * @param registry where
   * @param modelName value of the label model_name
   */
  public ToolParserMetrics(MetricsRegistry registry, String modelName) {
    this.modelName = modelName;
    this.calls = Counter.build(NAME, "Calls of the tool parser, by whether it found a call.")
        .labelNames("model_name", "mode", "outcome", "request_type").register(registry.collectorRegistry());
    for (String type : REQUEST_TYPES) {
      for (boolean streaming : new boolean[] {true, false}) {
        child(streaming, true, type);
        child(streaming, false, type);
      }
    }
  }

  /**
   * Counts a call.
   *
   * @param streaming true if the text is a delta of a stream
   * @param found true if it holds a tool call; false also if the parser failed
   * @param requestType chat_completions or responses; anything else counts as other
   */
  public void called(boolean streaming, boolean found, String requestType) {
    child(streaming, found, REQUEST_TYPES.contains(requestType) ? requestType : "other").inc();
  }

  private Counter.Child child(boolean streaming, boolean found, String requestType) {
    return calls.labels(modelName, streaming ? "streaming" : "non_streaming", found ? "tool_call" : "no_tool_call",
        requestType);
  }
}
