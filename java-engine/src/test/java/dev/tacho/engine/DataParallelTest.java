package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Several engines behind one API: each request goes to one of them, and together they are what one would be. */
@Timeout(120)
class DataParallelTest {
  private static final SamplingParams SHORT = SamplingParams.greedy().withMaxTokens(4);

  private static double counter(MetricsSnapshot snapshot, String name, int rank) {
    return snapshot.counter(name, Map.of("engine", "" + rank)).orElseThrow().value();
  }

  private static double gauge(Engine engine, String name, int rank) {
    return engine.metrics().snapshot().gauge(name, Map.of("engine", "" + rank)).orElseThrow().value();
  }

  private static GenerationRequest on(int rank, String prompt, SamplingParams sampling) {
    return GenerationRequest.builder().prompt(prompt).sampling(sampling).dataParallelRank(rank).build();
  }

  @Test
  void scoreIsInFlightOrQueuedAndPunishesWaitingOnAFullCache() {
    EngineLoad load = new EngineLoad();
    assertThat(load.score()).isZero();
    load.submitted(2);
    assertThat(load.score()).isEqualTo(2);
    load.snapshot(1, 4, 0.5);
    assertThat(load.score()).as("waiting + running is more than what is in flight").isEqualTo(5);
    load.snapshot(1, 4, 0.75);
    assertThat(load.score()).isEqualTo(5 + 4 * 6 * 0.25);
    load.snapshot(7, 0, 1);
    assertThat(load.score()).as("nothing waits").isEqualTo(7);
    load.snapshot(1, 0, 0.2);
    load.submitted(1);
    assertThat(load.score()).as("counts as waiting until the next snapshot").isEqualTo(3);
    load.ended(3);
    load.snapshot(0, 0, 0);
    assertThat(load.score()).isZero();
  }

  @Test
  void requestsSpreadOverIdleEnginesAndCountersAddUp() {
    Semaphore steps = new Semaphore(0);
    ScriptedRunner[] runners =
        IntStream.range(0, 3)
            .mapToObj(i -> ScriptedRunner.endless().during(step -> steps.acquire()))
            .toArray(ScriptedRunner[]::new);
    try (Engine engine = ScriptedEngine.over(runners).open()) {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < 9; i++) {
        handles.add(engine.submit(GenerationRequest.of("a", SHORT)));
      }
      steps.release(1000);
      handles.forEach(handle -> handle.completion().join());
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      for (int rank = 0; rank < 3; rank++) {
        assertThat(counter(snapshot, "vllm:generation_tokens", rank)).as("engine %d", rank).isEqualTo(12);
      }
      steps.release(1000);
    }
  }

  @Test
  void sequencesOfOneRequestStayTogetherAndShareItsPrompt() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.endless(), ScriptedRunner.endless()).open()) {
      GenerationRequest request =
          GenerationRequest.builder()
              .prompt(new int[100])
              .sampling(SHORT.toBuilder().n(4).build())
              .build();
      assertThat(engine.submit(request).completion().join().choices()).hasSize(4);
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      List<Double> hits = new ArrayList<>();
      List<Double> queries = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        hits.add(counter(snapshot, "vllm:prefix_cache_hits", rank));
        queries.add(counter(snapshot, "vllm:prefix_cache_queries", rank));
      }
      assertThat(queries).as("one engine gets all four").containsExactlyInAnyOrder(0.0, 400.0);
      assertThat(hits).as("three find the six full blocks of the first").containsExactlyInAnyOrder(0.0, 288.0);
    }
  }

  @Test
  void aRankCanBeAskedForAndIdsAreUniqueOverAll() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.endless(), ScriptedRunner.unhurried()).open()) {
      GenerationRequest.Builder mine =
          GenerationRequest.builder().prompt("a").sampling(SHORT.withMaxTokens(4000)).requestId("mine");
      GenerationHandle handle = engine.submit(mine.dataParallelRank(1).build());
      assertThatThrownBy(() -> engine.submit(mine.dataParallelRank(0).build()))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("in use");
      Await.until("a request runs", () -> gauge(engine, "vllm:num_requests_running", 1) > 0);
      assertThat(engine.resetPrefixCache()).as("one of them is busy").isFalse();
      assertThat(engine.explain("mine").orElseThrow().state()).isEqualTo(RequestExplanation.State.RUNNING);
      assertThatThrownBy(() -> engine.submit(on(2, "a", SHORT)))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("2");
      handle.cancel();
      assertThat(handle.completion().join().usage().generatedTokens()).isPositive();
      assertThat(engine.explain("mine")).isEmpty();
      assertThat(counter(engine.metrics().snapshot(), "vllm:generation_tokens", 0)).isZero();
      Await.until("its blocks are free: the step in flight has ended", engine::resetPrefixCache);
    }
  }

  /** User case 37, with engines of one group. */
  @Test
  void userCase37AnEngineThatDiesLeavesTheOthers() {
    ScriptedRunner failing =
        ScriptedRunner.endless()
            .during(
                step -> {
                  throw new IllegalStateException("injected");
                });
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.endless(), failing).open()) {
      for (int i = 0; i < 2; i++) {
        assertThatThrownBy(() -> engine.submit(on(1, "a", SHORT)).completion().join())
            .hasCauseInstanceOf(EngineException.class);
      }
      Await.until("engine 1 is dead", () -> engine.group().engines().get(1).state() == EngineState.DEAD);
      assertThat(engine.state()).isEqualTo(EngineState.DEGRADED);
      for (int i = 0; i < 10; i++) {
        assertThat(engine.complete("a", SHORT).usage().generatedTokens()).isEqualTo(4);
      }
      assertThatThrownBy(() -> engine.submit(on(1, "a", SHORT))).isInstanceOf(EngineDeadException.class);
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      assertThat(counter(snapshot, "vllm:generation_tokens", 0)).isEqualTo(40);
      assertThat(
              snapshot
                  .counter("vllm:request_success", Map.of("engine", "1", "finished_reason", "error"))
                  .orElseThrow()
                  .value())
          .isEqualTo(2);
      assertThat(gauge(engine, "vllm:num_requests_running", 1)).isZero();
    }
  }

  /** User case 37, with two groups in one registry. */
  @Test
  void userCase37ClosingOneGroupLeavesTheFamiliesOfTheOther() {
    MetricsRegistry registry = MetricsRegistry.create();
    Engine one =
        ScriptedEngine.over(ScriptedRunner.endless(), ScriptedRunner.endless()).name("one").registry(registry).open();
    try (Engine two =
        ScriptedEngine.over(ScriptedRunner.endless(), ScriptedRunner.endless()).name("two").registry(registry).open()) {
      one.complete("a", SHORT);
      two.complete("a", SHORT);
      one.close();
      String text = two.metrics().exposition();
      assertThat(text).doesNotContain("model_name=\"one\"");
      assertThat(text)
          .contains("vllm:num_requests_running{engine=\"0\",model_name=\"two\"} 0.0")
          .contains("vllm:num_requests_running{engine=\"1\",model_name=\"two\"} 0.0");
      double sum =
          counter(two.metrics().snapshot(), "vllm:generation_tokens", 0)
              + counter(two.metrics().snapshot(), "vllm:generation_tokens", 1);
      assertThat(sum).isEqualTo(4);
    }
  }

  @Test
  void refusalsAreCountedOnceForAll() {
    Semaphore steps = new Semaphore(0);
    ScriptedRunner first = ScriptedRunner.endless().during(step -> steps.acquire());
    ScriptedRunner second = ScriptedRunner.endless().during(step -> steps.acquire());
    try (Engine engine = ScriptedEngine.over(first, second).with(o -> o.maxNumQueuedReqs(2)).open()) {
      GenerationHandle a = engine.submit(GenerationRequest.of("a", SHORT));
      GenerationHandle b = engine.submit(GenerationRequest.of("b", SHORT));
      assertThatThrownBy(() -> engine.submit(GenerationRequest.of("c", SHORT)))
          .isInstanceOf(OverloadedException.class);
      steps.release(1000);
      a.completion().join();
      b.completion().join();
      assertThat(engine.metrics().exposition())
          .contains("vllm:admission_rejections_total{model_name=\"scripted\",reason=\"max_num_queued_reqs\"} 1.0");
      steps.release(1000);
    }
  }

  /** The same ids from each of two real engines that share the weights, and from one alone. */
  @Test
  void idsAreThoseOfASingleEngine() throws Exception {
    SamplingParams sampling = SamplingParams.greedy().withMaxTokens(60);
    List<Integer> alone;
    try (Engine engine = Engine.open(BundledModel.config().build())) {
      alone = engine.complete("One day", sampling).tokenIds();
    }
    try (Engine engine = Engine.open(BundledModel.config().dataParallelSize(2).build())) {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        handles.add(engine.submit(on(i % 2, "One day", sampling)));
      }
      for (GenerationHandle handle : handles) {
        assertThat(handle.completion().get(30, TimeUnit.SECONDS).tokenIds()).isEqualTo(alone);
      }
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      assertThat(counter(snapshot, "vllm:generation_tokens", 0)).isEqualTo(240);
      assertThat(counter(snapshot, "vllm:generation_tokens", 1)).isEqualTo(240);
    }
  }
}
