package dev.tacho.engine.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.scheduler.SchedulerConfig;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Figures of simulated runs that can be told by hand. */
class SimulationTest {
  private static final CostModel COST = new CostModel(1000, 10, 100, 0);

  private final RequestTrace trace = new RequestTrace();
  private final SchedulerConfig.Builder config = SchedulerConfig.builder().maxNumSeqs(8).maxModelLen(1000);

  private SimulationReport run(int blocks, boolean prefixCaching, CostModel cost) {
    return new Simulation(trace, config.build(), new KvBlockPool(blocks, 16, prefixCaching), cost).run(done -> {});
  }

  private void request(double arrival, int prompt, int output) {
    trace.add(arrival, prompt, output, RequestTrace.NO_GROUP, 0);
  }

  @Test
  void loneRequest() {
    request(5, 20, 3);
    SimulationReport report = run(11, false, COST);
    assertThat(report.requests()).isEqualTo(1);
    assertThat(report.steps()).isEqualTo(3);
    assertThat(report.timeToFirstToken().max()).isEqualTo(0.0012);
    assertThat(report.interTokenLatency().count()).isEqualTo(2);
    assertThat(report.interTokenLatency().p99()).isCloseTo(0.0011, within(0.0011 * 0.01));
    assertThat(report.endToEnd().max()).isEqualTo(0.0034);
    assertThat(report.seconds()).isEqualTo(0.0034);
    assertThat(report.prefillTokens()).isEqualTo(20);
    assertThat(report.decodeTokens()).isEqualTo(2);
    assertThat(report.outputTokens()).isEqualTo(3);
    assertThat(report.peakKvUsage()).isCloseTo(0.2, within(1e-12));
    assertThat(report.queueTime().max()).isZero();
  }

  @Test
  void contextCostsWhatIsAttendedTo() {
    request(0, 4, 2);
    SimulationReport report = run(11, false, new CostModel(0, 1, 1, 100));
    // 4 + 100 * (1 + 2 + 3 + 4), then 1 + 100 * 5.
    assertThat(report.timeToFirstToken().max()).isCloseTo(0.001004, within(1e-12));
    assertThat(report.endToEnd().max()).isCloseTo(0.001505, within(1e-12));
  }

  @Test
  void secondWaitsForTheFirstOnesPlace() {
    config.maxNumSeqs(1);
    request(0, 10, 2);
    request(0.0005, 10, 1);
    SimulationReport report = run(11, false, COST);
    // The first takes 1.1 ms and 1.1 ms; the second comes at 0.5 ms and is admitted at 2.2 ms.
    assertThat(report.queueTime().max()).isCloseTo(0.0017, within(1e-12));
    assertThat(report.timeToFirstToken().max()).isCloseTo(0.0028, within(1e-12));
    assertThat(report.peakWaiting()).isEqualTo(1);
    assertThat(report.peakRunning()).isEqualTo(1);
  }

  @Test
  void prefixOfAGroupIsComputedOnce() {
    for (int i = 0; i < 4; i++) {
      trace.add(i, 100, 1, i % 2, 64);
    }
    trace.add(9, 100, 1, RequestTrace.NO_GROUP, 64);
    SimulationReport report = run(101, true, COST);
    assertThat(report.cachedTokens()).isEqualTo(2 * 64);
    assertThat(report.prefillTokens()).isEqualTo(500 - 128);
    assertThat(report.promptTokens()).isEqualTo(500);
  }

  @Test
  void tooFewBlocksPreempt() {
    // Two of 5 blocks each at their end, 8 usable ones.
    request(0, 16, 60);
    request(0, 16, 60);
    SimulationReport report = run(9, false, COST);
    assertThat(report.preemptions()).isEqualTo(1);
    assertThat(report.outputTokens()).isEqualTo(120);
    assertThat(report.peakKvUsage()).isEqualTo(1);
    assertThat(report.prefillTokens()).isGreaterThan(32);
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3})
  void backlogChangesNothing(long seed) {
    Random random = new Random(seed);
    double at = 0;
    int prompts = 0;
    int outputs = 0;
    for (int i = 0; i < 2000; i++) {
      at += random.nextDouble() * 0.001;
      int prompt = 1 + random.nextInt(200);
      int output = 1 + random.nextInt(50);
      request(at, prompt, output);
      prompts += prompt;
      outputs += output;
    }
    SimulationReport report = run(201, random.nextBoolean(), COST);
    assertThat(report.requests()).isEqualTo(2000);
    assertThat(report.promptTokens()).isEqualTo(prompts);
    assertThat(report.outputTokens()).isEqualTo(outputs);
    assertThat(report.peakWaiting()).isGreaterThan(1000);
    assertThat(report.endToEnd().count()).isEqualTo(2000);
    assertThat(report.interTokenLatency().count()).isEqualTo(outputs - 2000);
  }

  @Test
  void whatCanNeverRunIsNamed() {
    request(0, 10, 1);
    request(0, 500, 400);
    assertThatThrownBy(() -> run(11, false, COST))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("request 2:")
        .hasMessageContaining("57 blocks");
    assertThatThrownBy(() -> new CostModel(0, 1, 0, 0)).hasMessageContaining("must cost time");
    assertThatThrownBy(() -> request(-1, 1, 1)).hasMessageContaining("arrival must be in");
    request(3, 1, 1);
    assertThatThrownBy(() -> request(2, 1, 1)).hasMessageContaining("goes back");
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 20261129})
  void percentilesAreRightToOnePercent(long seed) {
    Random random = new Random(seed);
    TimeHistogram histogram = new TimeHistogram();
    double[] all = new double[10_001];
    for (int i = 0; i < all.length; i++) {
      long nanos = (long) Math.exp(random.nextDouble() * 30);
      all[i] = nanos;
      histogram.record(nanos);
    }
    Arrays.sort(all);
    SimulationReport.Times times = histogram.times();
    assertThat(times.p50() * 1e9).isCloseTo(all[5000], within(all[5000] * 0.01));
    assertThat(times.p99() * 1e9).isCloseTo(all[9900], within(all[9900] * 0.01));
    assertThat(times.max() * 1e9).isCloseTo(all[10_000], within(1.0));
    assertThat(times.count()).isEqualTo(10_001);
    assertThat(new TimeHistogram().times().p99()).isZero();
  }
}
