package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.kv.KvLayout;
import dev.tacho.metrics.Await;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.page.MetricsSnapshot;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An engine that sleeps computes nothing, holds requests back, gives its memory up, and goes on as if nothing was. */
@Timeout(120)
class SleepTest {
  private static final SamplingParams LONG = SamplingParams.greedy().withMaxTokens(3000);
  private static final SamplingParams SHORT = SamplingParams.greedy().withMaxTokens(4);

  private static List<Double> sleepStates(Engine engine, int rank) {
    MetricsSnapshot snapshot = engine.metrics().snapshot();
    return List.of("awake", "weights_offloaded", "discard_all").stream()
        .map(
            state ->
                snapshot
                    .gauge("vllm:engine_sleep_state", Map.of("engine", "" + rank, "sleep_state", state))
                    .orElseThrow()
                    .value())
        .toList();
  }

  private static double gauge(Engine engine, String name, Map<String, String> labels) {
    return engine.metrics().snapshot().gauge(name, labels).orElseThrow().value();
  }

  /** Waits for a gauge: the engine thread publishes after it has answered. */
  private static void await(Engine engine, String name, Map<String, String> labels, double value) {
    Await.until(name + labels + " is " + value, () -> gauge(engine, name, labels) == value);
  }

  private static void awaitRunning(Engine engine, int count) {
    await(engine, "vllm:num_requests_running", Map.of(), count);
  }

  @Test
  void requestsEndOrWaitAndTheGaugeIsOneHot() throws Exception {
    ScriptedWeights weights = new ScriptedWeights();
    ScriptedEngine scripted = ScriptedEngine.over(ScriptedRunner.unhurried()).maxNumSeqs(1).weights(weights);
    try (Engine engine = scripted.open()) {
      assertThat(sleepStates(engine, 0)).containsExactly(1.0, 0.0, 0.0);
      GenerationHandle running = engine.submit(GenerationRequest.of("a", LONG));
      GenerationHandle queued = engine.submit(GenerationRequest.of("b", LONG));
      awaitRunning(engine, 1);
      engine.sleep(1);
      assertThat(engine.isSleeping()).isTrue();
      assertThat(engine.state()).isEqualTo(EngineState.SLEEPING);
      assertThat(sleepStates(engine, 0)).containsExactly(0.0, 1.0, 0.0);
      for (GenerationHandle handle : List.of(running, queued)) {
        Completion ended = handle.completion().get(10, TimeUnit.SECONDS);
        assertThat(ended.finishReason()).isEqualTo(FinishReason.ABORT);
        assertThat(ended.choices().getFirst().stopReason()).isEqualTo(new StopReason.Aborted(SleepControl.SLEEP));
      }
      assertThat(scripted.cachesDiscarded()).isEqualTo(1);
      assertThat(weights.discarded).isZero();

      GenerationHandle late = engine.submit(GenerationRequest.of("c", SHORT));
      late.accepted().join();
      assertThat(engine.explain(late.requestId()).orElseThrow().reason()).contains("sleeps");
      await(engine, "vllm:num_requests_waiting", Map.of(), 1);
      assertThat(gauge(engine, "vllm:num_requests_waiting_by_reason", Map.of("reason", "capacity"))).isEqualTo(1);
      assertThat(gauge(engine, "vllm:kv_cache_usage_perc", Map.of())).isZero();
      int stepsAsleep = scripted.steps();

      engine.sleep(2, SleepMode.KEEP);
      assertThat(sleepStates(engine, 0)).containsExactly(0.0, 0.0, 1.0);
      assertThat(weights.discarded).isEqualTo(1);
      engine.wake(Set.of(SleepTag.KV_CACHE));
      assertThat(engine.isSleeping()).isTrue();
      assertThat(sleepStates(engine, 0)).as("part of it is not awake").containsExactly(0.0, 0.0, 1.0);
      assertThat(weights.restored).isZero();
      assertThat(scripted.steps()).isEqualTo(stepsAsleep);
      engine.wake(Set.of(SleepTag.WEIGHTS));
      assertThat(weights.restored).isEqualTo(1);
      assertThat(engine.isSleeping()).isFalse();
      assertThat(engine.state()).isEqualTo(EngineState.RUNNING);
      assertThat(sleepStates(engine, 0)).containsExactly(1.0, 0.0, 0.0);
      assertThat(late.completion().get(10, TimeUnit.SECONDS).finishReason()).isEqualTo(FinishReason.LENGTH);
    }
    assertThat(weights.closed).isEqualTo(1);
  }

  @Test
  void sleepAndWakeOfAClosedGroupSayThatItIsClosedAndTouchNoWeights() {
    ScriptedWeights weights = new ScriptedWeights();
    ScriptedRunner failing =
        ScriptedRunner.endless()
            .during(
                step -> {
                  throw new IllegalStateException("injected");
                });
    Engine engine = ScriptedEngine.over(failing).weights(weights).open();
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(() -> engine.complete("a", SHORT)).isInstanceOf(EngineException.class);
    }
    // Nothing stops a sleep at the engines: a dead one takes no part in it.
    engine.close();
    assertThatThrownBy(() -> engine.sleep(2)).isInstanceOf(EngineClosedException.class);
    assertThatThrownBy(engine::wake).isInstanceOf(EngineClosedException.class);
    assertThat(weights.discarded).isZero();
  }

  @Test
  void levelZeroOnlyPauses() throws Exception {
    ScriptedEngine scripted = ScriptedEngine.over(ScriptedRunner.unhurried());
    try (Engine engine = scripted.open()) {
      GenerationHandle running = engine.submit(GenerationRequest.of("a", SamplingParams.greedy().withMaxTokens(500)));
      awaitRunning(engine, 1);
      engine.sleep(0, SleepMode.KEEP);
      int steps = scripted.steps();
      assertThat(sleepStates(engine, 0)).containsExactly(0.0, 0.0, 0.0);
      assertThat(gauge(engine, "vllm:num_requests_running", Map.of())).as("it keeps its place").isEqualTo(1);
      engine.wake(Set.of(SleepTag.WEIGHTS));
      assertThat(engine.isSleeping()).isTrue();
      assertThat(scripted.steps()).isEqualTo(steps);
      engine.wake();
      assertThat(running.completion().get(10, TimeUnit.SECONDS).usage().generatedTokens()).isEqualTo(500);
      assertThat(scripted.cachesDiscarded()).isZero();
    }
  }

  @Test
  void waitLetsRunningRequestsEndAndKeepComputesThemAgain() throws Exception {
    ScriptedEngine scripted = ScriptedEngine.over(ScriptedRunner.unhurried()).maxNumSeqs(1);
    try (Engine engine = scripted.open()) {
      GenerationHandle first = engine.submit(GenerationRequest.of("a", SamplingParams.greedy().withMaxTokens(200)));
      // Texts are tokenized side by side, so the order is certain only once the first is in.
      first.accepted().join();
      GenerationHandle second = engine.submit(GenerationRequest.of("b", LONG));
      awaitRunning(engine, 1);
      engine.sleep(1, SleepMode.WAIT);
      assertThat(first.completion().get(10, TimeUnit.SECONDS).finishReason()).isEqualTo(FinishReason.LENGTH);
      assertThat(second.completion()).isNotDone();
      engine.wake();
      awaitRunning(engine, 1);
      engine.sleep(1, SleepMode.KEEP);
      awaitPreemptions(engine, 1);
      await(engine, "vllm:num_requests_waiting", Map.of(), 1);
      assertThat(gauge(engine, "vllm:num_requests_running", Map.of())).as("what was taken back waits").isZero();
      assertThat(scripted.pool().numFree()).isEqualTo(scripted.pool().numBlocks() - 1);
      engine.wake();
      assertThat(second.completion().get(10, TimeUnit.SECONDS).usage().generatedTokens()).isEqualTo(3000);
    }
  }

  private static double preemptions(Engine engine) {
    return engine.metrics().snapshot().counter("vllm:num_preemptions", Map.of()).orElseThrow().value();
  }

  /** A preemption is counted once the output thread has picked up the step before it. */
  private static void awaitPreemptions(Engine engine, int count) {
    Await.until("a preemption", () -> preemptions(engine) >= count);
    assertThat(preemptions(engine)).isEqualTo(count);
  }

  @Test
  void allEnginesSleepAlikeAndOneThatHasDiedTakesNoPart() {
    ScriptedWeights weights = new ScriptedWeights();
    ScriptedRunner failing =
        ScriptedRunner.endless()
            .during(
                step -> {
                  throw new IllegalStateException("injected");
                });
    ScriptedEngine scripted =
        ScriptedEngine.over(ScriptedRunner.endless(), ScriptedRunner.endless(), failing).weights(weights);
    try (Engine engine = scripted.open()) {
      for (int i = 0; i < 2; i++) {
        GenerationRequest doomed =
            GenerationRequest.builder().prompt("a").sampling(SHORT).dataParallelRank(2).build();
        assertThatThrownBy(() -> engine.submit(doomed).completion().join()).hasCauseInstanceOf(EngineException.class);
      }
      Await.until("engine 2 is dead", () -> engine.group().engines().get(2).state() == EngineState.DEAD);
      engine.sleep(2);
      assertThat(sleepStates(engine, 0)).isEqualTo(sleepStates(engine, 1)).containsExactly(0.0, 0.0, 1.0);
      assertThat(weights.discarded).isEqualTo(1);
      assertThat(scripted.cachesDiscarded()).isEqualTo(2);
      engine.wake();
      assertThat(sleepStates(engine, 0)).isEqualTo(sleepStates(engine, 1)).containsExactly(1.0, 0.0, 0.0);
    }
  }

  @Test
  void aFailedWakingLeavesItAsleep() {
    ScriptedWeights weights = new ScriptedWeights();
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.endless()).weights(weights).open()) {
      engine.sleep(2);
      weights.gone = true;
      assertThatThrownBy(engine::wake).isInstanceOf(ModelFormatException.class);
      assertThat(engine.isSleeping()).isTrue();
      weights.gone = false;
      engine.wake();
      assertThat(engine.complete("a", SHORT).finishReason()).isEqualTo(FinishReason.LENGTH);
    }
  }

  @Test
  void levelsAndTagsAreChecked() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.endless())) {
      assertThatThrownBy(() -> engine.sleep(3)).isInstanceOf(InvalidRequestException.class).hasMessageContaining("3");
      assertThatThrownBy(() -> engine.sleep(-1)).isInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> SleepTag.of("cache"))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("kv_cache");
      assertThat(SleepTag.of("kv_cache")).isEqualTo(SleepTag.KV_CACHE);
      engine.wake();
      assertThat(engine.isSleeping()).isFalse();
    }
  }

  @ParameterizedTest(name = "level {0}")
  @ValueSource(ints = {0, 2})
  @Timeout(60)
  void aSleepingEngineClosesAtOnceHoweverLongTheDrain(int level) {
    Engine engine = ScriptedEngine.open(ScriptedRunner.unhurried());
    GenerationHandle running = engine.submit(GenerationRequest.of("a", SamplingParams.greedy().withMaxTokens(3900)));
    running.accepted().join();
    engine.sleep(level, SleepMode.KEEP);
    GenerationHandle waiting = engine.submit(GenerationRequest.of("a", SHORT));
    engine.close(Duration.ofHours(1));
    assertThatThrownBy(() -> running.completion().join()).hasCauseInstanceOf(EngineClosedException.class);
    assertThatThrownBy(() -> waiting.completion().join()).hasCauseInstanceOf(EngineClosedException.class);
    assertThatThrownBy(() -> engine.sleep(1)).isInstanceOf(EngineClosedException.class);
  }

  @Test
  @Timeout(60)
  void anEngineThatIsBeingClosedIsNotPutToSleep() {
    Semaphore steps = new Semaphore(0);
    Engine engine = ScriptedEngine.open(ScriptedRunner.endless().during(step -> steps.acquire()));
    GenerationHandle running = engine.submit(GenerationRequest.of("a", SHORT));
    running.accepted().join();
    CompletableFuture<Void> closed = CompletableFuture.runAsync(() -> engine.close(Duration.ofHours(1)));
    Await.until("the engine accepts no more", () -> !engine.state().accepts());
    assertThatThrownBy(() -> engine.sleep(1, SleepMode.KEEP)).isInstanceOf(EngineClosedException.class);
    steps.release(1000);
    assertThat(running.completion().join().finishReason()).isEqualTo(FinishReason.LENGTH);
    closed.join();
  }

  private static long residentBytes() throws IOException {
    String[] pages = Files.readString(Path.of("/proc/self/statm")).split(" ", -1);
    return Long.parseLong(pages[1]) * 4096;
  }

  /** Writes every block of both caches: a freed one is taken again after all others. */
  private static void fillCaches(Engine engine) throws Exception {
    int length = engine.info().maxModelLen() - 1;
    int prompts = engine.info().numKvBlocks() / KvLayout.blocksForTokens(length) + 1;
    List<GenerationHandle> handles = new ArrayList<>();
    for (int i = 0; i < 2 * prompts; i++) {
      int[] prompt = new int[length];
      Arrays.fill(prompt, 3 + i);
      GenerationRequest request =
          GenerationRequest.builder()
              .prompt(prompt)
              .sampling(SamplingParams.greedy().withMaxTokens(1))
              .dataParallelRank(i % 2)
              .build();
      handles.add(engine.submit(request));
    }
    for (GenerationHandle handle : handles) {
      assertThat(handle.completion().get(60, TimeUnit.SECONDS).finishReason()).isEqualTo(FinishReason.LENGTH);
    }
  }

  /** The memory that a real engine gives up is the system's again, and the answers are the same afterwards. */
  @Test
  void memoryIsGivenBackToTheSystem(@TempDir Path dir) throws Exception {
    Path file = Files.copy(BundledModel.path(), dir.resolve("model.gguf"));
    long cacheBytes = 64L << 20;
    EngineConfig config =
        BundledModel.config().model(file).kvCacheMemory(new MemorySize(cacheBytes)).dataParallelSize(2).build();
    try (Engine engine = Engine.open(config)) {
      List<Integer> before = engine.complete("One day", LONG.withMaxTokens(40)).tokenIds();
      fillCaches(engine);
      long awake = residentBytes();
      engine.sleep(1);
      assertThat(awake - residentBytes()).as("bytes given back by two caches").isGreaterThan(cacheBytes * 19 / 10);
      engine.wake();
      assertThat(engine.complete("One day", LONG.withMaxTokens(40)).tokenIds()).isEqualTo(before);

      engine.sleep(2);
      byte[] model = Files.readAllBytes(file);
      Files.delete(file);
      assertThatThrownBy(engine::wake).isInstanceOf(ModelFormatException.class);
      Files.write(file, model);
      engine.wake();
      for (int rank = 0; rank < 2; rank++) {
        GenerationRequest request =
            GenerationRequest.builder()
                .prompt("One day")
                .sampling(LONG.withMaxTokens(40))
                .dataParallelRank(rank)
                .build();
        assertThat(engine.submit(request).completion().get(20, TimeUnit.SECONDS).tokenIds()).isEqualTo(before);
      }
    }
  }
}
