package dev.tacho.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.GraphMode;
import dev.tacho.metrics.logger.LoggingStatLogger;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The option cudagraph-metrics, with events of an engine that has such graphs. */
class GraphLogTest {
  private static final long SECOND = 1_000_000_000;

  private final List<String> lines = new ArrayList<>();

  private LoggingStatLogger logger(EngineMetricsOptions options) {
    return new LoggingStatLogger(0, options.logOptions(), 0, (level, line) -> lines.add(line));
  }

  private void run(LoggingStatLogger logger) {
    MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());
    try (FakeEngine engine = new FakeEngine(0, registry, o -> o.statLogger(logger))) {
      for (int step = 0; step < 3; step++) {
        engine.events().graph(5, 8, GraphMode.FULL);
        engine.snapshot(1, 0, 0, 1, 1);
      }
      engine.events().graph(700, 700, GraphMode.NONE);
      engine.snapshot(1, 0, 0, 1, 1);
      engine.snapshot(1, 0, 0, 1, 1);
      registry.collector().drain();
      logger.log(SECOND);
    }
  }

  @Test
  void theTableCountsTheGraphsThatRanTheMostUsedFirst() {
    run(logger(EngineMetricsOptions.builder("m", 100).cudagraphMetrics("FULL_AND_PIECEWISE", List.of(1, 8)).build()));
    String table = lines.stream().filter(line -> line.contains("CUDAGraph")).reduce("", String::concat);
    assertThat(table).contains("- Mode: FULL_AND_PIECEWISE", "- Capture sizes: [1, 8]");
    assertThat(table.lines().filter(line -> line.startsWith("|")).map(line -> line.replaceAll("[ |]+", " ").strip()))
        .endsWith("5 8 3 FULL 3", "700 700 0 NONE 1");
  }

  @Test
  void withoutTheOptionThereIsNoTable() {
    run(logger(EngineMetricsOptions.builder("m", 100).build()));
    assertThat(lines).isNotEmpty().noneMatch(line -> line.contains("CUDAGraph"));
  }
}
