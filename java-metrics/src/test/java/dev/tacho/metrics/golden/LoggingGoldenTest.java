package dev.tacho.metrics.golden;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.tacho.metrics.logger.AggregatedLoggingStatLogger;
import dev.tacho.metrics.logger.LogOptions;
import dev.tacho.metrics.logger.LoggingStatLogger;
import dev.tacho.metrics.logger.StatLogger;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.slf4j.event.Level;

/**
 * The computed log lines.
 *
 * <table>
 *   <caption>differences on purpose (D)</caption>
 *   <tr><td>preemptions-never-shown, and any other with preemptions</td><td>preemptions are shown when there were
 *       any</td></tr>
 *   <tr><td>any with corrupted requests</td><td>their number is shown</td></tr>
 * </table>
 */
class LoggingGoldenTest {
  @TestFactory
  Stream<DynamicTest> cases() {
    return GoldenFile.cases("logging").map(c -> DynamicTest.dynamicTest(c.get("id").asText(), () -> run(c)));
  }

  private static void run(JsonNode golden) {
    List<String> lines = new ArrayList<>();
    StatLogger logger =
        logger(golden, (level, line) -> lines.add((level == Level.WARN ? "WARNING" : level) + " " + line));
    JsonNode steps = golden.get("steps");
    undoInPlaceSums(steps);
    List<String> expected = new ArrayList<>();
    List<String> got = new ArrayList<>();
    Counted counted = new Counted();
    for (int i = 0; i < steps.size(); i++) {
      JsonNode step = steps.get(i);
      lines.clear();
      switch (step.get("call").asText()) {
        case "log" -> logger.log(Math.round(step.get("t").asDouble() * 1e9));
        case "record" -> logger.record(step.get("engine_idx").asInt(),
            GoldenStats.scheduler(step.get("scheduler_stats")), GoldenStats.iteration(step));
        default -> initialized(logger, golden.get("config").path("num_gpu_blocks").asInt(0));
      }
      counted.add(step.path("iteration_stats"));
      lines.forEach(line -> got.add(counted.without(line)));
      for (JsonNode line : golden.get("expected").get(i)) {
        expected.add(line.get("level").asText() + " " + line.get("message").asText());
      }
    }
    assertThat(got).isEqualTo(expected);
  }

  /**
   * The cases were written down after their run, in which the transfers of an interval were appended to the lists of
   * the interval's first record. Takes them off there again.
   */
  private static void undoInPlaceSums(JsonNode steps) {
    JsonNode first = null;
    for (JsonNode step : steps) {
      JsonNode transfers = step.path("scheduler_stats").path("kv_connector_stats");
      if (step.get("call").asText().equals("log")) {
        first = null;
      } else if (transfers.isObject() && first == null) {
        first = transfers;
      } else if (transfers.isObject()) {
        for (Map.Entry<String, JsonNode> list : transfers.properties()) {
          ArrayNode sum = (ArrayNode) first.get(list.getKey());
          int own = sum.size() - list.getValue().size();
          while (own >= 0 && sum.size() > own) {
            sum.remove(own);
          }
        }
      }
    }
  }

  private static StatLogger logger(JsonNode golden, BiConsumer<Level, String> lines) {
    JsonNode config = golden.get("config");
    List<Integer> sizes = new ArrayList<>();
    config.path("capture_sizes").forEach(size -> sizes.add(size.asInt()));
    LogOptions options = new LogOptions("cuda", config.path("enable_mfu_metrics").asBoolean(), false,
        config.path("nans").asBoolean(), config.path("is_diffusion").asBoolean(),
        config.path("cudagraph_metrics").asBoolean() ? "FULL_AND_PIECEWISE" : null, sizes);
    long nanos = Math.round(golden.get("constructed_at").asDouble() * 1e9);
    JsonNode logger = golden.get("logger");
    if (logger.get("kind").asText().equals("per_engine")) {
      return new LoggingStatLogger(logger.get("engine_index").asInt(), options, nanos, lines);
    }
    List<Integer> engines = new ArrayList<>();
    logger.get("engine_indexes").forEach(index -> engines.add(index.asInt()));
    return new AggregatedLoggingStatLogger(engines, options, nanos, lines);
  }

  private static void initialized(StatLogger logger, int blocks) {
    if (logger instanceof LoggingStatLogger one) {
      one.initialized(blocks);
    } else if (logger instanceof AggregatedLoggingStatLogger several) {
      several.initialized(blocks);
    }
  }

  /** What the engine's line shows and vLLM's does not. */
  private static final class Counted {
    private long preemptions;
    private long corrupted;

    void add(JsonNode iteration) {
      preemptions += iteration.path("num_preempted_reqs").asLong();
      corrupted += iteration.path("num_corrupted_reqs").asLong();
    }

    /** Asserts that the line shows what was counted, and takes it out. */
    String without(String line) {
      if (!line.contains("Avg prompt throughput")) {
        return line;
      }
      assertThat(line.contains("Preemptions: " + preemptions + ",")).isEqualTo(preemptions > 0);
      String rest = line.replace("Preemptions: " + preemptions + ", ", "");
      if (corrupted > 0) {
        assertThat(rest).contains("Corrupted: " + corrupted + " reqs");
        rest = rest.replace("Corrupted: " + corrupted + " reqs", "Corrupted: 0 reqs");
      }
      preemptions = 0;
      corrupted = 0;
      return rest;
    }
  }
}
