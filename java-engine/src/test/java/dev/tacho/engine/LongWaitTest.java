package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.engine.scheduler.SchedulerConfig;
import dev.tacho.engine.scheduler.SchedulerListener;
import dev.tacho.engine.scheduler.SchedulingPolicy;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepOutputs;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import dev.tacho.metrics.Await;
import dev.tacho.metrics.event.FinishReason;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Why requests wait: the line in the log, and the gauge. */
@Timeout(60)
class LongWaitTest {
  private static final long SECOND = 1_000_000_000;
  private static final SamplingParams LONG = SamplingParams.greedy().withMaxTokens(3000);

  private static GenerationRequest request(String id, int promptTokens) {
    return request(id, promptTokens, LONG);
  }

  private static GenerationRequest request(String id, int promptTokens, SamplingParams sampling) {
    return GenerationRequest.builder()
        .prompt(new ByteCodec().encode(id.substring(0, 1).repeat(promptTokens)))
        .sampling(sampling)
        .requestId(id)
        .build();
  }

  private static double waiting(Engine engine, String reason) {
    return engine.metrics().snapshot().gauge("vllm:num_requests_waiting_by_reason", Map.of("reason", reason))
        .orElseThrow()
        .value();
  }

  @Test
  void userCase20OneRunsFourteenWaitAndTheLogSaysWhy() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).numBlocks(301).open()) {
      GenerationHandle running = engine.submit(request("running", 1000));
      assertThat(running.deltas().iterator().next().tokenIds()).isNotEmpty();
      assertThat(engine.group().engines().getFirst().longWait(Duration.ZERO)).as("nobody waits").isNull();
      engine.submit(request("big", 3800, LONG.withMaxTokens(200)));
      for (int i = 0; i < 13; i++) {
        engine.submit(request("small" + i, 16, LONG));
      }
      // The last one has entered, and all those before it.
      assertThat(engine.explain("small12").orElseThrow().position()).isEqualTo(14);
      String line = Objects.requireNonNull(engine.group().engines().getFirst().longWait(Duration.ZERO));
      assertThat(line)
          .startsWith("Running: 1, Waiting: 14. Request big, the first in the queue, has waited ")
          .containsPattern(" s: it needs 238 KV blocks, \\d+ are free$");
      assertThat(engine.group().engines().getFirst().longWait(Duration.ofHours(1))).as("not that long").isNull();
      assertThat(waiting(engine, "capacity")).isEqualTo(14);
      assertThat(waiting(engine, "deferred")).isZero();
      running.cancel();
    }
  }

  /** Computes a step; each sequence that is sampled gets a token. */
  private static void step(Scheduler scheduler, long second) {
    StepPlan plan = scheduler.schedule(second * SECOND);
    StepResult result = new StepResult();
    for (int i = 0; i < plan.numSequences(); i++) {
      result.nextSequence();
      if (plan.samples(i)) {
        result.addToken('x', null);
      }
    }
    scheduler.update(plan, result, second * SECOND, new StepOutputs());
  }

  private static Sequence add(Scheduler scheduler, String id, long second) {
    SamplingParams params = SamplingParams.greedy().withMaxTokens(40);
    int[] prompt = new ByteCodec().encode(id.repeat(15));
    Sequence sequence =
        Sequence.builder(id, prompt, new SamplerState(params, Set.of(), 0))
            .maxTokens(40)
            .arrivalNanos(second * SECOND + id.charAt(0))
            .build();
    scheduler.add(sequence, second * SECOND);
    return sequence;
  }

  @ParameterizedTest
  @EnumSource(SchedulingPolicy.class)
  void lineIsAboutWhoeverHasWaitedLongest(SchedulingPolicy policy) {
    SchedulerConfig config =
        SchedulerConfig.builder().maxModelLen(64).watermark(0).asyncScheduling(false).policy(policy).build();
    Scheduler scheduler = new Scheduler(config, new KvBlockPool(5, 16, false), SchedulerListener.NONE);
    add(scheduler, "a", 0);
    add(scheduler, "b", 0);
    for (int second = 3; second < 21; second++) {
      step(scheduler, second);
      if (second == 5) {
        // Each of the two has two blocks now, of four.
        add(scheduler, "c", 5);
      }
    }
    assertThat(scheduler.numRunning()).isEqualTo(2);
    step(scheduler, 21);
    Sequence b = scheduler.waiting().getFirst();
    assertThat(b.requestId()).as("whom a preempted for a third block").isEqualTo("b");
    assertThat(LongWait.describe(scheduler, 25 * SECOND, Duration.ofSeconds(20)))
        .isEqualTo(
            "Running: 1, Waiting: 2. Request c has waited 20 s behind 1 in the queue, first of them request b:"
                + " others needed its KV blocks; it needs 3 KV blocks, 1 are free");
    assertThat(LongWait.describe(scheduler, 25 * SECOND, Duration.ofSeconds(21))).isNull();
    scheduler.abort(scheduler.waiting().getLast(), FinishReason.ABORT, 25 * SECOND);
    assertThat(LongWait.describe(scheduler, 25 * SECOND, Duration.ofSeconds(4)))
        .isEqualTo(
            "Running: 1, Waiting: 1. Request b, the first in the queue, has waited 4 s (7 s altogether, preempted"
                + " once): others needed its KV blocks; it needs 3 KV blocks, 1 are free");
    assertThat(LongWait.describe(scheduler, 25 * SECOND, Duration.ofSeconds(5))).isNull();
  }

  /** Thirty requests whose 480 tokens each take 30 blocks, of 39. */
  private static void submitTooMany(Engine engine) {
    for (int i = 0; i < 30; i++) {
      engine.submit(request("r" + i, 8, LONG.withMaxTokens(472))).accepted().join();
    }
  }

  private static void awaitPreemptions(Engine engine) {
    Await.until("many preemptions", () -> preemptions(engine) >= 60);
  }

  private static double preemptions(Engine engine) {
    return engine.metrics().snapshot().counter("vllm:num_preemptions", Map.of()).orElseThrow().value();
  }

  @Test
  void preemptionsAgainAndAgainHaveALine() {
    CountDownLatch goOn = new CountDownLatch(1);
    ScriptedRunner runner =
        ScriptedRunner.endless()
            .during(
                step -> {
                  goOn.await();
                  // As long as a step of a real model.
                  LockSupport.parkNanos(200_000);
                });
    try (Engine engine = ScriptedEngine.over(runner).numBlocks(40).open()) {
      EngineRuntime runtime = engine.group().engines().getFirst();
      assertThat(runtime.repeatedPreemptions()).as("nothing runs").isNull();
      submitTooMany(engine);
      goOn.countDown();
      awaitPreemptions(engine);
      Pattern pattern =
          Pattern.compile(
              "(\\d+) sequences were preempted (\\d+) times in the last (\\d+) s: 39 KV blocks are too few for the"
                  + " (\\d+) sequences that ran at a time; a smaller --max-num-seqs or more --kv-cache-memory would"
                  + " help");
      Matcher first = pattern.matcher(Objects.requireNonNull(runtime.repeatedPreemptions()));
      assertThat(first.matches()).as("%s", first).isTrue();
      assertThat(Integer.parseInt(first.group(1))).isBetween(1, 29);
      int counted = Integer.parseInt(first.group(2));
      assertThat(counted).isGreaterThanOrEqualTo(60);
      assertThat(Integer.parseInt(first.group(3))).isBetween(1, 60);
      assertThat(Integer.parseInt(first.group(4))).isEqualTo(30);
      String next = runtime.repeatedPreemptions();
      Matcher second = pattern.matcher(next == null ? "" : next);
      int countedNext = second.matches() ? Integer.parseInt(second.group(2)) : 0;
      assertThat(preemptions(engine)).as("each is counted in one line").isGreaterThanOrEqualTo(counted + countedNext);
      Await.until("all have ended", () -> runtime.unfinished() == 0);
      Matcher last = pattern.matcher(Objects.requireNonNull(runtime.repeatedPreemptions()));
      assertThat(last.matches()).as("of those that ran until the end: %s", last).isTrue();
      assertThat(runtime.repeatedPreemptions()).as("told once").isNull();
    }
  }

  @Test
  void gaugeTellsTheWaitOfThosePreempted() {
    CountDownLatch allAreThere = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    AtomicBoolean hold = new AtomicBoolean();
    ScriptedRunner runner =
        ScriptedRunner.endless()
            .during(
                step -> {
                  // So that each of them runs before one is preempted.
                  allAreThere.await();
                  LockSupport.parkNanos(200_000);
                  if (hold.get()) {
                    goOn.await();
                  }
                });
    try (Engine engine = ScriptedEngine.over(runner).numBlocks(40).open()) {
      submitTooMany(engine);
      allAreThere.countDown();
      awaitPreemptions(engine);
      hold.set(true);
      Await.until(
          "a waiting sequence, each of which has run, has waited for 50 ms",
          () ->
              engine.metrics().snapshot().gauge("tacho:oldest_waiting_seconds", Map.of()).orElseThrow().value()
                  >= 0.05);
      goOn.countDown();
    } finally {
      allAreThere.countDown();
      goOn.countDown();
    }
  }

  @Test
  void lineComesWhileItLastsAndEndsWithTheEngine() throws InterruptedException {
    CountDownLatch end = new CountDownLatch(1);
    BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    AtomicInteger asked = new AtomicInteger();
    EngineWatch watch =
        new EngineWatch(
            Duration.ofMillis(1),
            Duration.ofMillis(2),
            end,
            () -> asked.incrementAndGet() % 2 == 0 ? "line " + asked.get() : null,
            lines::add);
    Thread thread = Thread.ofVirtual().start(watch);
    assertThat(lines.take()).isEqualTo("line 2");
    assertThat(lines.take()).isEqualTo("line 4");
    end.countDown();
    thread.join();
  }

  @Test
  void deadEngineIsAskedNoMore() throws InterruptedException {
    EngineWatch watch =
        new EngineWatch(
            Duration.ofMillis(1),
            Duration.ofMillis(2),
            new CountDownLatch(1),
            () -> {
              throw new EngineClosedException();
            },
            line -> {});
    Thread.ofVirtual().start(watch).join();
  }
}
