package dev.tacho.metrics.logger;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.slf4j.event.Level;

/** Lines that no computed case has. */
class LogLinesTest {
  private static final long SECOND = 1_000_000_000;

  private final List<String> lines = new ArrayList<>();

  private LoggingStatLogger logger(LogOptions options) {
    return new LoggingStatLogger(0, options, 0, (level, line) -> lines.add(level + " " + line));
  }

  @Test
  void theEncoderCachesFiguresAreSummedOverTheInterval() {
    LoggingStatLogger logger = logger(LogOptions.of("cpu"));
    SchedulerStats stats = new SchedulerStats();
    stats.encoderCache().add("Num transfers", 2L);
    stats.encoderCache().add("Time (ms)", 1.25);
    logger.record(0, stats, null);
    logger.record(0, stats, null);
    logger.log(SECOND);
    assertThat(lines).contains("DEBUG EC Transfer metrics: Num transfers=4, Time (ms)=2.5");
    lines.clear();
    logger.log(2 * SECOND);
    assertThat(lines).hasSize(1);
  }

  @Test
  void theDetailsOfTheEstimateAreADebugLine() {
    SchedulerStats stats = new SchedulerStats();
    StepShape shape = new StepShape();
    shape.add(true, 1000, 0);
    shape.add(false, 1, 50);
    ModelShape model = ModelShape.dense(2, 1024, 8, 8, 128, 4096, 32000, 2, 2, 2);
    new PerfEstimator(model, true).estimate(shape, stats.work());
    long flops = stats.work().parts().flops().values().stream().mapToLong(Long::longValue).sum();
    assertThat(flops).isEqualTo(stats.work().flops());
    LoggingStatLogger logger = logger(LogOptions.of("cpu").withMfuMetrics(true).withMfuDetails(true));
    logger.record(0, stats, null);
    logger.log(4 * SECOND);
    assertThat(lines).filteredOn(l -> l.contains("MFU details")).singleElement().asString()
        .startsWith("""
            DEBUG Engine 000: MFU details: {
              "prefill_reqs": 1,
              "decode_reqs": 1,
              "num_batches": 1,
              "context_breakdown": {
                "prefill_num_tokens": 1000,
            """)
        .contains("\"ffn.dense_ffn\": \"0.1TF\"").contains("\"unembed.weight\": \"0.1GB\"")
        .contains("\"duration\": \"4.0s\"").endsWith("%\"\n}");
    lines.clear();
    logger.log(5 * SECOND);
    assertThat(lines).noneMatch(l -> l.contains("MFU"));
    new PerfEstimator(model).estimate(shape, stats.work());
    assertThat(stats.work().parts().steps()).as("parts are kept by who asks for them alone").isEqualTo(1);
  }

  @Test
  void eachEngineHasItsOwnInstanceAndAnUnknownOneIsDropped() {
    Map<Integer, List<Integer>> running = new TreeMap<>();
    PerEngineStatLogger logger = new PerEngineStatLogger(List.of(0, 3), index -> (engine, scheduler, iteration) -> {
      if (scheduler != null) {
        running.computeIfAbsent(index, key -> new ArrayList<>()).add(scheduler.running());
      }
    });
    SchedulerStats stats = new SchedulerStats();
    stats.queues(5, 0, 0);
    logger.record(3, stats, null);
    logger.recorder().record(0, stats, null);
    logger.record(1, stats, null);
    assertThat(running).containsOnlyKeys(0, 3).containsEntry(3, List.of(5));
  }

  @Test
  void linesAreAtDebugLevelWhileNothingIsDone() {
    LoggingStatLogger logger = logger(LogOptions.of("cpu"));
    logger.log(SECOND);
    assertThat(lines).singleElement().asString().startsWith(Level.DEBUG + " Engine 000: ");
  }
}
