package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Why requests wait: the line in the log, and the gauge. */
@Timeout(60)
class LongWaitTest {
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

  @Test
  void lineComesWhileItLastsAndEndsWithTheEngine() throws InterruptedException {
    CountDownLatch end = new CountDownLatch(1);
    BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    AtomicInteger asked = new AtomicInteger();
    LongWait longWait =
        new LongWait(
            Duration.ofMillis(1),
            end,
            () -> asked.incrementAndGet() % 2 == 0 ? "line " + asked.get() : null,
            lines::add);
    Thread thread = Thread.ofVirtual().start(longWait);
    assertThat(lines.take()).isEqualTo("line 2");
    assertThat(lines.take()).isEqualTo("line 4");
    end.countDown();
    thread.join();
  }

  @Test
  void deadEngineIsAskedNoMore() throws InterruptedException {
    LongWait longWait =
        new LongWait(
            Duration.ofMillis(1),
            new CountDownLatch(1),
            () -> {
              throw new EngineClosedException();
            },
            line -> {});
    Thread.ofVirtual().start(longWait).join();
  }
}
