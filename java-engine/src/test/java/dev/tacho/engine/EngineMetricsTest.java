package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is on the metrics after requests have gone their ways. */
@Timeout(60)
class EngineMetricsTest {
  private static final SamplingParams LONG = SamplingParams.greedy().withMaxTokens(2000);
  private static final List<String> REASONS = List.of("stop", "length", "abort", "error", "repetition");

  private static double gauge(MetricsSnapshot snapshot, String name) {
    return snapshot.gauge("vllm:" + name, Map.of()).orElseThrow().value();
  }

  private static double counter(MetricsSnapshot snapshot, String name) {
    return snapshot.counter("vllm:" + name, Map.of()).orElseThrow().value();
  }

  private static MetricsSnapshot.Histogram histogram(MetricsSnapshot snapshot, String name) {
    return snapshot.histogram("vllm:" + name, Map.of()).orElseThrow();
  }

  private static double finished(MetricsSnapshot snapshot, String reason) {
    return snapshot.counter("vllm:request_success", Map.of("finished_reason", reason)).orElseThrow().value();
  }

  private static double finished(MetricsSnapshot snapshot) {
    return REASONS.stream().mapToDouble(reason -> finished(snapshot, reason)).sum();
  }

  private static void assertNothingRuns(MetricsSnapshot snapshot) {
    assertThat(gauge(snapshot, "num_requests_running")).isZero();
    assertThat(gauge(snapshot, "num_requests_waiting")).isZero();
    assertThat(gauge(snapshot, "kv_cache_usage_perc")).isZero();
  }

  /** Blocks of what was aborted are free when the step in flight has ended. */
  private static MetricsSnapshot whenNoBlockIsUsed(Engine engine) {
    Await.until("no block is used", () -> gauge(engine.metrics().snapshot(), "kv_cache_usage_perc") == 0);
    return engine.metrics().snapshot();
  }

  @Test
  void countersAgreeWithWhatCallersGot() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abcdefg"))) {
      for (int i = 0; i < 3; i++) {
        assertThat(engine.complete("0123456789", LONG).text()).isEqualTo("abcdefg");
      }
      assertThat(engine.complete("0123456789", LONG.withMaxTokens(2)).text()).isEqualTo("ab");
      assertThat(engine.complete("01", LONG.toBuilder().stop(List.of("de")).build()).text()).isEqualTo("abc");
      // A stop string counts when the engine thread has let its sequence go.
      Await.until("nothing runs", () -> gauge(engine.metrics().snapshot(), "num_requests_running") == 0);
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      assertThat(finished(snapshot, "stop")).isEqualTo(4);
      assertThat(finished(snapshot, "length")).isEqualTo(1);
      assertThat(counter(snapshot, "prompt_tokens")).isEqualTo(42);
      assertThat(counter(snapshot, "generation_tokens")).isBetween(3 * 8 + 2 + 5.0, 3 * 8 + 2 + 8.0);
      assertThat(histogram(snapshot, "time_to_first_token_seconds").count()).isEqualTo(5);
      assertThat(histogram(snapshot, "e2e_request_latency_seconds").count()).isEqualTo(5);
      assertThat(histogram(snapshot, "request_queue_time_seconds").count()).isEqualTo(5);
      assertThat(histogram(snapshot, "request_prefill_time_seconds").sum()).isPositive();
      assertThat(histogram(snapshot, "request_params_max_tokens").sum()).isEqualTo(4 * 2000 + 2);
    }
  }

  /** User case 1: a prompt of 10 tokens with n = 4. */
  @Test
  void userCase1SeveralCompletionsOfOnePrompt() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abc"))) {
      Completion answer = engine.complete("0123456789", LONG.toBuilder().n(4).build());
      assertThat(answer.usage().promptTokens()).isEqualTo(10);
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      assertThat(histogram(snapshot, "request_params_n").count()).isEqualTo(1);
      assertThat(histogram(snapshot, "request_params_n").sum()).isEqualTo(4);
      assertThat(histogram(snapshot, "e2e_request_latency_seconds").count()).isEqualTo(4);
      assertThat(counter(snapshot, "prompt_tokens")).isEqualTo(40);
    }
  }

  /** User case 2: a streaming client goes away. */
  @ParameterizedTest(name = "async {0}")
  @ValueSource(booleans = {false, true})
  void userCase2AbortOfAStreamCountsAndFreesWithinOneStep(boolean async) throws Exception {
    Semaphore steps = new Semaphore(0);
    int behind = async ? 1 : 0;
    ScriptedRunner runner = ScriptedRunner.endless().during(step -> steps.acquire());
    try (Engine engine = ScriptedEngine.over(runner).with(options -> options.asyncScheduling(async)).open()) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("0123456789", LONG));
      var deltas = handle.deltas().iterator();
      steps.release(2);
      assertThat(deltas.next().text()).startsWith("x");
      Await.until("three steps", () -> runner.steps() >= 3);
      assertThat(gauge(engine.metrics().snapshot(), "kv_cache_usage_perc")).isPositive();
      handle.cancel();
      steps.release(1);
      handle.completion().get();
      assertThat(runner.launches()).as("no launch after the step in which it was cancelled").isEqualTo(3 + behind);
      steps.release(behind);
      MetricsSnapshot snapshot = whenNoBlockIsUsed(engine);
      assertThat(runner.steps()).isEqualTo(3 + behind);
      assertThat(finished(snapshot, "abort")).isEqualTo(1);
      assertThat(finished(snapshot)).isEqualTo(1);
      assertThat(histogram(snapshot, "e2e_request_latency_seconds").count()).isZero();
      assertThat(histogram(snapshot, "request_decode_time_seconds").count()).isZero();
      assertNothingRuns(snapshot);
    }
  }

  /** A request counts once it has ended, and only if asked for. */
  @Test
  void requestsWithANanInTheirLogitsAreCounted() {
    for (boolean counted : new boolean[] {true, false}) {
      ScriptedRunner runner = ScriptedRunner.saying("abc").nanIn(2);
      try (Engine engine =
          ScriptedEngine.over(runner).with(options -> options.computeNansInLogits(counted)).open()) {
        engine.complete("x", LONG);
        engine.complete("y", LONG);
        assertThat(engine.metrics().snapshot().counter("vllm:corrupted_requests", Map.of()).isPresent())
            .isEqualTo(counted);
        if (counted) {
          assertThat(counter(engine.metrics().snapshot(), "corrupted_requests")).isEqualTo(1);
        }
      }
    }
  }

  /** User case 3: all requests aborted at once; no new one is needed for the gauges to fall. */
  @Test
  void userCase3AllAbortedAtOnce() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).maxNumSeqs(4).open()) {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        handles.add(engine.submit(GenerationRequest.of("0123456789", LONG.withMaxTokens(4000))));
      }
      handles.forEach(handle -> handle.accepted().join());
      handles.forEach(GenerationHandle::cancel);
      handles.forEach(handle -> handle.completion().join());
      MetricsSnapshot snapshot = whenNoBlockIsUsed(engine);
      assertNothingRuns(snapshot);
      assertThat(finished(snapshot, "abort")).isEqualTo(20);
    }
  }

  /** User case 6: the stamps of a request are in order, so no interval is below 0. */
  @Test
  void userCase6IntervalsAreNeverNegativeAndAddUp() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.saying("abcdef")).maxNumSeqs(2).open()) {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        handles.add(engine.submit(GenerationRequest.of("0123456789", LONG)));
      }
      for (GenerationHandle handle : handles) {
        Timings timings = handle.completion().join().timings();
        assertThat(timings.queue().isNegative()).isFalse();
        assertThat(timings.prefill().isNegative()).isFalse();
        assertThat(timings.decode().isNegative()).isFalse();
        assertThat(timings.queue().plus(timings.prefill()).plus(timings.decode()))
            .isLessThanOrEqualTo(timings.endToEnd());
        assertThat(timings.timeToFirstToken()).isGreaterThanOrEqualTo(timings.queue().plus(timings.prefill()));
      }
    }
  }

  /** User case 16: metrics without any HTTP server. */
  @Test
  void userCase16OneCallReturnsTheExposition() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abc"))) {
      assertThat(engine.metrics().exposition())
          .contains("vllm:num_requests_running{engine=\"0\",model_name=\"scripted\"} 0.0")
          .contains("vllm:generation_tokens_total{engine=\"0\",model_name=\"scripted\"} 0.0")
          .contains("vllm:cache_config_info{");
      engine.complete("a", LONG);
      assertThat(engine.metrics().exposition())
          .contains("vllm:generation_tokens_total{engine=\"0\",model_name=\"scripted\"} 4.0")
          .contains("tacho:engine_state{");
      assertThat(engine.metrics().exposition(EngineMetrics.Format.OPENMETRICS)).endsWith("# EOF\n");
    }
  }

  @Test
  void openMetricsNamesTheRequestBehindALatency() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abc"))) {
      engine.submit(GenerationRequest.builder().prompt("a").sampling(LONG).requestId("order-66").build())
          .completion().join();
      String text = engine.metrics().exposition(EngineMetrics.Format.OPENMETRICS);
      for (String family : List.of("time_to_first_token", "inter_token_latency", "e2e_request_latency")) {
        assertThat(text.lines().filter(line -> line.startsWith("vllm:" + family + "_seconds_bucket{")))
            .anyMatch(line -> line.contains("# {request_id=\"order-66\"} "));
      }
      assertThat(engine.metrics().exposition()).doesNotContain("order-66");
    }
  }

  /** User case 26: longer than the context, both numbers; max_tokens 0, below 0, or more than what is left. */
  @Test
  void userCase26RequestsThatDoNotFitTheContext() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.endless()).maxModelLen(20).open()) {
      assertThat(catchThrowable(() -> engine.complete("x".repeat(25), LONG)))
          .isInstanceOf(PromptTooLongException.class)
          .hasMessageContaining("25")
          .hasMessageContaining("20");
      assertThat(catchThrowable(() -> LONG.withMaxTokens(0)))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("max_tokens");
      assertThat(catchThrowable(() -> LONG.withMaxTokens(-1)))
          .isInstanceOf(InvalidRequestException.class);
      assertThat(
              catchThrowable(
                  () -> engine.complete("0123456789", SamplingParams.greedy().withMaxTokens(11))))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("max_tokens: 11")
          .hasMessageContaining("10 tokens")
          .hasMessageContaining("20 tokens")
          .hasMessageContaining("at most 10");
      assertThat(engine.complete("0123456789", SamplingParams.greedy().withMaxTokens(10)).text()).hasSize(10);
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      assertThat(finished(snapshot)).as("what was refused never was a request").isEqualTo(1);
    }
  }

  @Test
  void failedStepsAndDeadEnginesCountAsErrorsAndLeaveNothingRunning() {
    ScriptedRunner runner =
        ScriptedRunner.endless()
            .during(
                step -> {
                  throw new IllegalStateException("step " + step);
                });
    try (Engine engine = ScriptedEngine.over(runner).maxNumSeqs(1).open()) {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        handles.add(engine.submit(GenerationRequest.of("a", LONG)));
      }
      handles.forEach(handle -> handle.completion().exceptionally(e -> null).join());
      assertThat(handles).allMatch(handle -> handle.completion().isCompletedExceptionally());
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      assertNothingRuns(snapshot);
      assertThat(finished(snapshot, "error")).isEqualTo(finished(snapshot)).isGreaterThanOrEqualTo(2);
      assertThat(snapshot.gauge("tacho:engine_state", Map.of("state", "dead")).orElseThrow().value()).isEqualTo(1);
    }
  }

  /** User case 37: engines of one registry come and go without touching the others' families. */
  @Test
  void userCase37EnginesShareARegistryAndLeaveItAlone() {
    MetricsRegistry registry = MetricsRegistry.create();
    ScriptedRunner refused = ScriptedRunner.saying("c");
    try (Engine stays =
        ScriptedEngine.over(ScriptedRunner.saying("a")).name("stays").registry(registry).open()) {
      Engine leaves = ScriptedEngine.over(ScriptedRunner.saying("b")).name("leaves").registry(registry).open();
      stays.complete("x", LONG);
      leaves.complete("x", LONG);
      assertThat(stays.metrics().exposition()).contains("model_name=\"leaves\"").contains("model_name=\"stays\"");
      assertThat(
              catchThrowable(
                  () -> ScriptedEngine.over(refused).name("stays").registry(registry).open().close()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("stays");
      assertThat(refused.closed()).as("what was opened before the clash is closed").isTrue();
      leaves.close();
      assertThat(leaves.metrics().exposition())
          .doesNotContain("model_name=\"leaves\"")
          .contains("vllm:generation_tokens_total{engine=\"0\",model_name=\"stays\"} 2.0");
    }
  }

  /** A soak of seconds: requests that end in every way, scraped all the while. */
  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {31, 32})
  void everyAcceptedRequestEndsInExactlyOneReason(long seed) {
    Random random = new Random(seed);
    AtomicReference<EngineRuntime> running = new AtomicReference<>();
    AtomicLong lookedAt = new AtomicLong();
    AtomicLong unbalanced = new AtomicLong();
    ScriptedRunner runner =
        ScriptedRunner.saying("once upon a time there was a fox. ".repeat(3))
            .during(
                step -> {
                  if (step == 700) {
                    throw new IllegalStateException("injected");
                  }
                  EngineRuntime runtime = running.get();
                  if (runtime != null) {
                    lookedAt.incrementAndGet();
                    unbalanced.addAndGet(Math.abs(runtime.unfinished() - runtime.scheduled()));
                  }
                });
    try (Engine engine = ScriptedEngine.over(runner).maxNumSeqs(6).numBlocks(300).open()) {
      running.set(engine.group().engines().getFirst());
      List<GenerationHandle> handles = new ArrayList<>();
      double before = 0;
      for (int i = 0; i < 1500; i++) {
        SamplingParams params =
            LONG.toBuilder()
                .n(random.nextInt(5) == 0 ? 3 : 1)
                .maxTokens(random.nextInt(1, 200))
                .stop(random.nextInt(3) == 0 ? List.of("fox") : List.of())
                .build();
        GenerationHandle handle = engine.submit(GenerationRequest.of("a".repeat(random.nextInt(1, 60)), params));
        handles.add(handle);
        if (random.nextInt(4) == 0) {
          handles.get(random.nextInt(handles.size())).cancel();
        }
        if (random.nextInt(10) == 0) {
          LockSupport.parkNanos(random.nextInt(2_000_000));
          MetricsSnapshot snapshot = engine.metrics().snapshot();
          double ended = finished(snapshot);
          assertThat(ended).isGreaterThanOrEqualTo(before);
          assertThat(gauge(snapshot, "num_requests_running")).isBetween(0.0, 6.0);
          before = ended;
        }
      }
      handles.forEach(handle -> handle.completion().exceptionally(e -> null).join());
      MetricsSnapshot snapshot = whenNoBlockIsUsed(engine);
      assertNothingRuns(snapshot);
      assertThat((long) finished(snapshot)).isEqualTo(engine.group().engines().getFirst().accepted());
      assertThat(histogram(snapshot, "e2e_request_latency_seconds").count())
          .isEqualTo((long) (finished(snapshot) - finished(snapshot, "abort")));
      assertThat(lookedAt.get()).isGreaterThan(1000);
      assertThat(unbalanced).as("accepted less ended is running and waiting, in every step").hasValue(0);
    }
  }
}
