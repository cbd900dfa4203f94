package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.event.FinishReason;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The end of an engine: order, requests that run, drains, closing from anywhere. */
@Timeout(120)
class EngineCloseTest {
  private static final SamplingParams LONG = SamplingParams.greedy().withMaxTokens(4000);

  @Test
  void threadsEndBeforeTheTeamAndTheTeamBeforeTheMemory() {
    List<String> order = new ArrayList<>();
    ScriptedRunner runner = ScriptedRunner.unhurried();
    Engine engine =
        ScriptedEngine.over(runner)
            .memory(
                () -> order.add("kv cache, runner closed: " + runner.closed() + ", threads: " + engineThreads()),
                () -> order.add("weights"))
            .open();
    GenerationHandle handle = engine.submit(GenerationRequest.of("a", LONG));
    handle.accepted().join();
    engine.close();
    assertThat(order).containsExactly("kv cache, runner closed: true, threads: 0", "weights");
    assertThat(engine.state()).isEqualTo(EngineState.CLOSED);
    engine.close();
    assertThat(order).hasSize(2);
    assertThatThrownBy(() -> engine.submit(GenerationRequest.of("a", LONG))).isInstanceOf(EngineClosedException.class);
    assertThatThrownBy(() -> engine.encode("a")).isInstanceOf(EngineClosedException.class);
  }

  /** Live engine and output threads of this JVM; tests of this class run one after another. */
  private static long engineThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(t -> t.getName().startsWith("tacho-engine-") || t.getName().startsWith("tacho-output-"))
        .count();
  }

  @Test
  void runningAndWaitingRequestsEndWithEngineClosed() {
    Semaphore steps = new Semaphore(3);
    ScriptedRunner runner = ScriptedRunner.endless().during(step -> steps.acquire());
    Engine engine = ScriptedEngine.over(runner).maxNumSeqs(1).open();
    GenerationHandle running = engine.submit(GenerationRequest.of("a", LONG));
    GenerationHandle waiting = engine.submit(GenerationRequest.of("b", LONG));
    running.accepted().join();
    waiting.accepted().join();
    Thread closer = Thread.ofPlatform().start(engine::close);
    Await.until("the engine accepts no more", () -> !engine.state().accepts());
    assertThatThrownBy(() -> engine.submit(GenerationRequest.of("c", LONG))).isInstanceOf(EngineClosedException.class);
    steps.release(1000);
    assertEngineClosed(running);
    assertEngineClosed(waiting);
    join(closer);
  }

  private static void assertEngineClosed(GenerationHandle handle) {
    assertThatThrownBy(() -> handle.completion().join())
        .isInstanceOf(CompletionException.class)
        .hasCauseInstanceOf(EngineClosedException.class);
    assertThatThrownBy(() -> handle.deltas().forEach(delta -> {})).isInstanceOf(EngineClosedException.class);
  }

  @Test
  void drainLetsRequestsEndAndTakesNoNewOnes() {
    Semaphore steps = new Semaphore(0);
    Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abc").during(step -> steps.acquire()));
    GenerationHandle handle = engine.submit(GenerationRequest.of("a", LONG));
    handle.accepted().join();
    CompletableFuture<Void> closed = CompletableFuture.runAsync(() -> engine.close(Duration.ofHours(1)));
    Await.until("the engine accepts no more", () -> !engine.state().accepts());
    assertThatThrownBy(() -> engine.submit(GenerationRequest.of("b", LONG))).isInstanceOf(EngineClosedException.class);
    steps.release(100);
    assertThat(handle.completion().join().text()).isEqualTo("abc");
    closed.join();
    assertThat(engine.state()).isEqualTo(EngineState.CLOSED);
  }

  @ParameterizedTest(name = "drain of {0} seconds")
  @ValueSource(longs = {3600, Long.MAX_VALUE})
  @Timeout(60)
  void anotherCloseCutsTheDrainShort(long seconds) {
    Engine engine = ScriptedEngine.open(ScriptedRunner.endless().during(step -> LockSupport.parkNanos(100_000)));
    GenerationHandle handle = engine.submit(GenerationRequest.of("a", LONG));
    handle.accepted().join();
    CompletableFuture<Void> draining = CompletableFuture.runAsync(() -> engine.close(Duration.ofSeconds(seconds)));
    Await.until("the engine accepts no more", () -> !engine.state().accepts());
    engine.close();
    assertEngineClosed(handle);
    draining.join();
  }

  @Test
  void aListenerMayCloseTheEngine() throws Exception {
    Engine engine = ScriptedEngine.open(ScriptedRunner.unhurried());
    CountDownLatch closed = new CountDownLatch(1);
    engine
        .submit(GenerationRequest.of("a", LONG))
        .onDelta(
            delta -> {
              engine.close();
              closed.countDown();
            });
    closed.await();
    assertThat(engine.state()).isEqualTo(EngineState.CLOSED);
  }

  @Test
  void interruptedCloserFinishesClosingAndStaysInterrupted() {
    Engine engine = ScriptedEngine.open(ScriptedRunner.unhurried());
    engine.submit(GenerationRequest.of("a", LONG)).accepted().join();
    Thread.currentThread().interrupt();
    engine.close(Duration.ofHours(1));
    assertThat(Thread.interrupted()).isTrue();
    assertThat(engine.state()).isEqualTo(EngineState.CLOSED);
  }

  /** Whatever the moment: close returns, each request ends once, with its tokens or with EngineClosedException. */
  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {11, 12})
  void closesAtRandomPointsWithRequestsRunning(long seed) {
    Random random = new Random(seed);
    for (int round = 0; round < 300; round++) {
      Engine engine = ScriptedEngine.over(ScriptedRunner.saying("abcdefghij")).maxNumSeqs(4).open();
      List<GenerationHandle> handles = new ArrayList<>();
      int requests = random.nextInt(1, 12);
      for (int i = 0; i < requests; i++) {
        GenerationRequest.Builder request = GenerationRequest.builder().sampling(LONG);
        handles.add(
            engine.submit(random.nextBoolean() ? request.prompt("ab").build() : request.prompt(new int[] {1}).build()));
        if (random.nextInt(4) == 0) {
          handles.getLast().cancel();
        }
      }
      LockSupport.parkNanos(random.nextInt(200_000));
      List<Thread> closers = new ArrayList<>();
      for (int i = random.nextInt(1, 3); i > 0; i--) {
        closers.add(Thread.ofVirtual().start(engine::close));
      }
      closers.forEach(EngineCloseTest::join);
      for (GenerationHandle handle : handles) {
        Throwable problem = catchThrowable(() -> handle.completion().join());
        if (problem != null) {
          assertThat(problem).hasCauseInstanceOf(EngineClosedException.class);
        } else {
          Completion answer = handle.completion().join();
          assertThat(answer.finishReason()).isIn(FinishReason.STOP, FinishReason.ABORT);
          assertThat("abcdefghij").startsWith(answer.text());
        }
      }
    }
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
