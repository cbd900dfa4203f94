package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.page.MetricsSnapshot;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * All that the engine's interface allows, from many threads at once: each request of which there is a handle ends once,
 * the counters add up, all blocks come back, nobody hangs.
 */
@Timeout(120)
class EngineChaosTest {
  private static final int CLIENTS = 6;
  private static final int REQUESTS = 120;
  private static final int ENGINES = 2;
  private static final List<String> REASONS = List.of("stop", "length", "abort", "error", "repetition");

  private final Queue<GenerationHandle> handles = new ConcurrentLinkedQueue<>();
  private final CountDownLatch clientsLeft = new CountDownLatch(CLIENTS);

  private static Engine open(String policy) {
    ScriptedRunner[] runners = new ScriptedRunner[ENGINES];
    for (int i = 0; i < ENGINES; i++) {
      runners[i] = ScriptedRunner.saying("once upon a time").during(step -> LockSupport.parkNanos(20_000));
    }
    return ScriptedEngine.over(runners)
        .maxNumSeqs(4)
        .numBlocks(24)
        .maxModelLen(256)
        .with(options -> options.schedulingPolicy(policy).asyncScheduling(policy.equals("fcfs")))
        .open();
  }

  private static GenerationRequest request(Random random) {
    SamplingParams params =
        SamplingParams.greedy().toBuilder()
            .n(random.nextInt(4) == 0 ? 1 + random.nextInt(6) : 1)
            .maxTokens(1 + random.nextInt(40))
            .build();
    GenerationRequest.Builder builder = GenerationRequest.builder().sampling(params).priority(random.nextInt(5) - 2);
    String text = "x".repeat(1 + random.nextInt(200));
    if (random.nextBoolean()) {
      builder.prompt(text);
    } else {
      builder.prompt(new ByteCodec().encode(text));
    }
    if (random.nextInt(4) == 0) {
      builder.queueTimeout(Duration.ofMillis(1 + random.nextInt(20)));
    }
    return builder.build();
  }

  /** Submits, and cancels some at once, some later; ends when the engine is closed. */
  private Void client(Engine engine, Random random) {
    try {
      for (int i = 0; i < REQUESTS; i++) {
        GenerationHandle handle = engine.submit(request(random));
        handles.add(handle);
        switch (random.nextInt(6)) {
          case 0 -> handle.cancel();
          case 1 -> {
            var _ = handle.accepted().thenRun(handle::cancel);
          }
          case 2 -> LockSupport.parkNanos(5_000_000);
          default -> LockSupport.parkNanos(random.nextInt(500_000));
        }
      }
    } catch (EngineClosedException e) {
      return null;
    } finally {
      clientsLeft.countDown();
    }
    return null;
  }

  /** Sleeps, wakes, resets and asks until the clients have left. */
  private Void disturber(Engine engine, Random random) {
    try {
      while (clientsLeft.getCount() > 0) {
        switch (random.nextInt(5)) {
          case 0 -> engine.sleep(random.nextInt(3), SleepMode.values()[random.nextInt(SleepMode.values().length)]);
          case 1 -> engine.resetPrefixCache();
          case 2 -> handles.stream().skip(random.nextInt(50)).findFirst().ifPresent(h -> explain(engine, h));
          default -> engine.wake(random.nextBoolean() ? Set.of() : Set.of(SleepTag.KV_CACHE));
        }
        LockSupport.parkNanos(random.nextInt(2_000_000));
      }
      engine.wake();
    } catch (EngineClosedException e) {
      return null;
    }
    return null;
  }

  private static void explain(Engine engine, GenerationHandle handle) {
    engine.explain(handle.requestId()).ifPresent(explained -> assertThat(explained.reason()).isNotEmpty());
  }

  private static double sum(MetricsSnapshot snapshot, String counter, Map<String, String> labels) {
    double sum = 0;
    for (int rank = 0; rank < ENGINES; rank++) {
      Map<String, String> all = new HashMap<>(labels);
      all.put("engine", "" + rank);
      sum += snapshot.counter(counter, all).orElseThrow().value();
    }
    return sum;
  }

  private static double finished(MetricsSnapshot snapshot) {
    return REASONS.stream()
        .mapToDouble(reason -> sum(snapshot, "vllm:request_success", Map.of("finished_reason", reason)))
        .sum();
  }

  private List<Callable<Void>> tasks(Engine engine, long seed) {
    List<Callable<Void>> tasks = new ArrayList<>();
    for (int i = 0; i < CLIENTS; i++) {
      Random random = new Random(seed * 100 + i);
      tasks.add(() -> client(engine, random));
    }
    for (int i = 0; i < 2; i++) {
      Random random = new Random(seed * 100 + 50 + i);
      tasks.add(() -> disturber(engine, random));
    }
    return tasks;
  }

  @ParameterizedTest(name = "seed {0}, {1}")
  @CsvSource({"81, fcfs", "82, priority"})
  void everyRequestEndsOnceAndTheCountersAddUp(long seed, String policy) throws Exception {
    try (Engine engine = open(policy);
        ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (Future<Void> task : threads.invokeAll(tasks(engine, seed))) {
        task.get();
      }
      // The last to wake may have been overtaken by one who put to sleep.
      engine.wake();
      double sequences = 0;
      for (GenerationHandle handle : handles) {
        Completion completion = handle.completion().get(30, TimeUnit.SECONDS);
        assertThat(completion.choices()).allMatch(choice -> choice.finishReason() != null);
        sequences += completion.choices().size();
      }
      double all = sequences;
      assertThat(handles).hasSize(CLIENTS * REQUESTS);
      assertThat(sum(engine.metrics().snapshot(), "tacho:requests_accepted", Map.of())).isEqualTo(all);
      Await.until("all have ended, once", () -> finished(engine.metrics().snapshot()) == all);
      assertThat(engine.resetPrefixCache()).as("all blocks are free").isTrue();
    }
    assertThat(EngineLoad.allIdle()).isTrue();
  }

  @ParameterizedTest(name = "seed {0}, {1}")
  @CsvSource({"91, fcfs", "92, priority"})
  void closingFromSeveralThreadsEndsEveryRequest(long seed, String policy) throws Exception {
    Engine engine = open(policy);
    List<Callable<Void>> tasks = tasks(engine, seed);
    for (int i = 0; i < 3; i++) {
      Duration drain = Duration.ofMillis(5L * i);
      tasks.add(
          () -> {
            Await.until("a third has been submitted", () -> handles.size() > CLIENTS * REQUESTS / 3);
            engine.close(drain);
            return null;
          });
    }
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (Future<Void> task : threads.invokeAll(tasks)) {
        task.get();
      }
    }
    for (GenerationHandle handle : handles) {
      try {
        var _ = handle.completion().get(30, TimeUnit.SECONDS);
      } catch (ExecutionException e) {
        assertThat(e).hasCauseInstanceOf(EngineClosedException.class);
      }
    }
    assertThat(engine.state()).isEqualTo(EngineState.CLOSED);
    assertThat(EngineLoad.allIdle()).isTrue();
  }
}
