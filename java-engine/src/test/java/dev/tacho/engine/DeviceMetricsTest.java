package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.tacho.engine.kernel.Operation;
import dev.tacho.engine.model.OperationCounters;
import dev.tacho.metrics.Await;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.perf.DeviceCounters;
import dev.tacho.metrics.perf.DevicePeaks;
import dev.tacho.metrics.perf.ExactWork;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.perf.WorkEstimate;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the device of a real engine has done, on the metrics: the runner's own counts, whatever happens meanwhile. */
@Timeout(120)
class DeviceMetricsTest {
  private static final int PROMPT = 48;
  private static final int GENERATED = 20;

  /** An engine over the bundled model, with a look at the parts that it runs on. */
  private static final class Opened implements AutoCloseable {
    final EngineParts parts;
    final Engine engine;

    Opened(EngineConfig.Builder options) {
      EngineConfig config = options.build();
      LoadedModel model = ModelLoader.load(config);
      parts = model.engines().getFirst();
      engine = new Engine(new EngineGroup(config, model, null, List.of(), Mailbox.Limits.DEFAULT));
    }

    void generate() {
      SamplingParams sampling = SamplingParams.greedy().withMaxTokens(GENERATED).withIgnoreEos(true);
      int[] prompt = IntStream.range(0, PROMPT).map(i -> 5 + i).toArray();
      engine.submit(GenerationRequest.builder().prompt(prompt).sampling(sampling).build()).completion().join();
    }

    /** Sums over the operations of a step, and the calls. */
    List<Long> work() {
      long flops = 0;
      long read = 0;
      long written = 0;
      long calls = 0;
      for (Operation operation : Operation.values()) {
        OperationCounters counted = parts.runner().counters(operation);
        calls += counted.calls();
        if (operation != Operation.WEIGHT_PACK) {
          flops += counted.flops();
          read += counted.readBytes();
          written += counted.writeBytes();
        }
      }
      return List.of(flops, read, written, engine.info().kernels().startsWith("native") ? calls : 0);
    }

    /** The metrics at a moment in which nothing was computed. */
    MetricsSnapshot atRest() {
      record Moment(List<Long> before, MetricsSnapshot snapshot, List<Long> after) {}
      return Await.value(
              "nothing is computed",
              () -> new Moment(work(), engine.metrics().snapshot(), work()),
              moment ->
                  gauge(moment.snapshot, "vllm:num_requests_running") == 0 && moment.before.equals(moment.after))
          .snapshot;
    }

    long memory(String area) {
      return (long) engine.metrics().snapshot().gauge("tacho:memory_bytes", Map.of("area", area)).orElseThrow().value();
    }

    @Override
    public void close() {
      engine.close();
    }
  }

  private static double gauge(MetricsSnapshot snapshot, String name) {
    return snapshot.gauge(name, Map.of()).orElseThrow().value();
  }

  private static double counter(MetricsSnapshot snapshot, String name) {
    return snapshot.counter(name, Map.of()).orElseThrow().value();
  }

  private static List<Long> published(MetricsSnapshot snapshot) {
    return List.of(
        (long) counter(snapshot, "tacho:counted_flops"),
        (long) counter(snapshot, "tacho:counted_read_bytes"),
        (long) counter(snapshot, "tacho:counted_write_bytes"),
        (long) counter(snapshot, "tacho:ffi_calls"));
  }

  @Test
  void theMetricsShowWhatTheRunnerCountedAlsoAfterSleepAndClose() {
    Opened opened = new Opened(BundledModel.config());
    List<Long> last;
    try (opened) {
      assertThat(opened.work().getFirst()).as("packing weights is no step").isZero();
      opened.generate();
      List<Long> first = published(opened.atRest());
      assertThat(first).isEqualTo(opened.work());
      assertThat(first.getFirst()).isPositive();

      EngineInfo info = opened.engine.info();
      assertThat(opened.memory("weights")).isEqualTo(info.weights().bytes()).isPositive();
      assertThat(opened.memory("kv_cache")).isEqualTo(info.kvCache().bytes()).isPositive();
      assertThat(opened.memory("scratch")).isEqualTo(info.workspace().bytes()).isPositive();
      assertThat(opened.memory("metrics")).isGreaterThan(1 << 20);
      opened.engine.sleep(1);
      assertThat(opened.memory("weights")).isPositive();
      assertThat(opened.memory("kv_cache")).isZero();
      opened.engine.sleep(2);
      assertThat(opened.memory("weights")).isZero();
      assertThat(published(opened.atRest())).isEqualTo(first);
      opened.engine.wake(Set.of(SleepTag.WEIGHTS));
      assertThat(opened.memory("weights")).isPositive();
      assertThat(opened.memory("kv_cache")).isZero();
      opened.engine.wake();
      assertThat(opened.memory("kv_cache")).isEqualTo(info.kvCache().bytes());

      opened.generate();
      last = published(opened.atRest());
      assertThat(last).isEqualTo(opened.work());
      assertThat(last.getFirst()).isGreaterThan(first.getFirst());
    }
    DeviceCounters afterClose = new DeviceCounters(0);
    new RunnerCounters(opened.parts.runner(), new CounterPage()).read(afterClose);
    assertThat(List.of(afterClose.flops(), afterClose.readBytes(), afterClose.writeBytes(), afterClose.ffiCalls()))
        .isEqualTo(last);
  }

  /** The estimate is the estimator's, step by step; the count is the exact work of those steps. */
  @Test
  void estimatedAndCountedOperationsAreInTheRatioOfTheirDefinitions() {
    try (Opened opened = new Opened(BundledModel.config().asyncScheduling(false))) {
      opened.generate();
      MetricsSnapshot snapshot = opened.atRest();
      ModelShape model = Objects.requireNonNull(opened.parts.shape());
      PerfEstimator estimator = new PerfEstimator(model);
      ExactWork exact = new ExactWork(model);
      long estimated = 0;
      long counted = 0;
      for (int step = 0; step < GENERATED; step++) {
        int tokens = step == 0 ? PROMPT : 1;
        int computed = step == 0 ? 0 : PROMPT + step - 1;
        StepShape shape = new StepShape();
        shape.add(step == 0, tokens, computed);
        WorkEstimate work = new WorkEstimate();
        estimator.estimate(shape, work);
        estimated += work.flops();
        exact.reset();
        exact.add(tokens, computed, 1);
        WorkEstimate done = new WorkEstimate();
        exact.count(done);
        counted += done.flops();
      }
      assertThat(counter(snapshot, "vllm:estimated_flops_per_gpu")).isEqualTo((double) estimated);
      assertThat(counter(snapshot, "tacho:counted_flops")).isCloseTo((double) counted, withinPercentage(1));
      double documented = (double) estimated / counted;
      assertThat(counter(snapshot, "vllm:estimated_flops_per_gpu") / counter(snapshot, "tacho:counted_flops"))
          .isCloseTo(documented, withinPercentage(1));
    }
  }

  @Test
  void eachWorkerSaysHowLongItWaitedForTheOther() {
    long opening = System.nanoTime();
    try (Opened opened = new Opened(BundledModel.config().threads(2))) {
      List<Double> waits;
      do {
        opened.generate();
        MetricsSnapshot snapshot = opened.engine.metrics().snapshot();
        waits =
            IntStream.range(0, 2)
                .mapToObj(i -> snapshot.counter("tacho:worker_wait_seconds", Map.of("worker", "" + i)).orElseThrow())
                .map(sample -> sample.value())
                .toList();
      } while (waits.getFirst() == 0 || waits.getLast() == 0);
      double all = (System.nanoTime() - opening) / 1e9;
      assertThat(waits).allSatisfy(wait -> assertThat(wait).as("of %s s", all).isLessThan(all));
    }
  }

  @Test
  void timeOfStepsIsTimeOfTheTeamAndRatiosShowOncePeaksAreGiven() {
    long opening = System.nanoTime();
    try (Opened opened = new Opened(BundledModel.config().devicePeaks(new DevicePeaks(1e9, 1e9)))) {
      assertThat(opened.parts.runner().busyNanos()).as("loading is no step").isZero();
      MetricsSnapshot snapshot =
          Await.value(
              "the ratios show",
              () -> {
                opened.generate();
                return opened.engine.metrics().snapshot();
              },
              current -> gauge(current, "tacho:mfu_ratio") > 0);
      assertThat(gauge(snapshot, "tacho:mbu_ratio")).isPositive();
      assertThat(gauge(snapshot, "tacho:device_busy_ratio")).isGreaterThan(0.01).isLessThanOrEqualTo(1);
      long busy = opened.parts.runner().busyNanos();
      assertThat(busy).isPositive().isLessThan(System.nanoTime() - opening);
    }
  }
}
