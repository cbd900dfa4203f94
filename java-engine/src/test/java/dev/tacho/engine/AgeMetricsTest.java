package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.page.MetricsSnapshot;
import java.util.Map;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How old what is open is, and how long ago the last step was. */
@Timeout(60)
class AgeMetricsTest {
  private static final SamplingParams LONG = SamplingParams.greedy().withMaxTokens(1000);
  private static final double NANOS = 1e9;
  private static final double LONG_AGO = 0.05;

  private static double gauge(MetricsSnapshot snapshot, String name) {
    return snapshot.gauge(name, Map.of()).orElseThrow().value();
  }

  private static void await(Engine engine, String name, double least) {
    Await.until(name + " is " + least, () -> gauge(engine.metrics().snapshot(), name) >= least);
  }

  @Test
  void agesAreThoseOfTheOldestAndGoWithIt() throws Exception {
    Semaphore steps = new Semaphore(0);
    ScriptedRunner runner = ScriptedRunner.endless().during(step -> steps.acquire());
    try (Engine engine =
        ScriptedEngine.over(runner).maxNumSeqs(1).with(options -> options.asyncScheduling(false)).open()) {
      MetricsSnapshot none = engine.metrics().snapshot();
      assertThat(gauge(none, "tacho:oldest_running_seconds")).isZero();
      assertThat(gauge(none, "tacho:oldest_waiting_seconds")).isZero();
      assertThat(gauge(none, "tacho:seconds_since_last_step")).isZero();

      final long before = System.nanoTime();
      final GenerationHandle running = engine.submit(GenerationRequest.of("a", LONG));
      await(engine, "vllm:num_requests_running", 1);
      final long started = System.nanoTime();
      steps.release();
      Await.until("two steps", () -> runner.steps() >= 2);
      final long stepped = System.nanoTime();
      // Taken in between two steps, so not before this one.
      GenerationHandle waiting = engine.submit(GenerationRequest.of("b", LONG));
      waiting.accepted().join();
      steps.release();
      await(engine, "vllm:num_requests_waiting", 1);
      final long waits = System.nanoTime();
      await(engine, "tacho:oldest_waiting_seconds", LONG_AGO);

      long asked = System.nanoTime();
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      long answered = System.nanoTime();
      assertThat(gauge(snapshot, "tacho:oldest_running_seconds"))
          .isBetween((asked - started) / NANOS, (answered - before) / NANOS);
      assertThat(gauge(snapshot, "tacho:oldest_waiting_seconds"))
          .isBetween((asked - waits) / NANOS, (answered - stepped) / NANOS);
      assertThat(gauge(snapshot, "tacho:seconds_since_last_step"))
          .isBetween((asked - waits) / NANOS, (answered - stepped) / NANOS);

      running.cancel();
      waiting.cancel();
      steps.release(LONG.maxTokens());
      running.completion().join();
      waiting.completion().join();
      Await.until(
          "nothing runs", () -> gauge(engine.metrics().snapshot(), "tacho:oldest_running_seconds") == 0);
      assertThat(gauge(engine.metrics().snapshot(), "tacho:oldest_waiting_seconds")).isZero();
    }
  }
}
