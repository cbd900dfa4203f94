package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.event.FinishReason;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Who is admitted first, and who gives up waiting. */
@Timeout(60)
class QueueOrderTest {
  private static final SamplingParams LONG = SamplingParams.greedy().withMaxTokens(3900);

  private static GenerationRequest.Builder request(String id) {
    return GenerationRequest.builder().prompt(new int[] {1, 2, 3}).sampling(LONG).requestId(id);
  }

  private static double aborted(Engine engine) {
    return engine.metrics().snapshot().counter("vllm:request_success", Map.of("finished_reason", "abort"))
        .orElseThrow()
        .value();
  }

  @ParameterizedTest(name = "{0}")
  @CsvSource({"fcfs, first late urgent normal", "priority, first urgent normal late"})
  void policyDecidesWhoIsAdmittedFirst(String policy, String expected) throws InterruptedException {
    List<String> admitted = new ArrayList<>();
    CountDownLatch firstRuns = new CountDownLatch(1);
    CountDownLatch allAreThere = new CountDownLatch(1);
    ScriptedRunner runner =
        new ScriptedRunner(
            sequence -> {
              admitted.add(sequence.requestId());
              return ByteCodec.EOS;
            });
    runner.during(
        step -> {
          firstRuns.countDown();
          allAreThere.await();
        });
    try (Engine engine =
        ScriptedEngine.over(runner).maxNumSeqs(1).with(options -> options.schedulingPolicy(policy)).open()) {
      List<GenerationHandle> handles = new ArrayList<>();
      handles.add(engine.submit(request("first").priority(9).build()));
      assertThat(firstRuns.await(60, TimeUnit.SECONDS)).as("the first one runs before the others come").isTrue();
      handles.add(engine.submit(request("late").priority(5).build()));
      handles.add(engine.submit(request("urgent").priority(-1).build()));
      handles.add(engine.submit(request("normal").build()));
      allAreThere.countDown();
      handles.forEach(handle -> handle.completion().join());
    }
    assertThat(String.join(" ", admitted)).isEqualTo(expected);
  }

  @Test
  void requestThatWaitsTooLongEndsAsAbortedAndIsCounted() {
    ScriptedRunner runner = ScriptedRunner.unhurried();
    try (Engine engine = ScriptedEngine.over(runner).maxNumSeqs(1).open()) {
      GenerationHandle running = engine.submit(request("running").build());
      GenerationHandle late = engine.submit(request("late").queueTimeout(Duration.ofMillis(20)).build());
      Completion ended = late.completion().join();
      assertThat(ended.finishReason()).isEqualTo(FinishReason.ABORT);
      assertThat(ended.choices().get(0).stopReason()).isEqualTo(new StopReason.Aborted("queue_timeout"));
      assertThat(ended.usage().generatedTokens()).isZero();
      assertThat(ended.timings().endToEnd()).isGreaterThanOrEqualTo(Duration.ofMillis(20));
      assertThat(aborted(engine)).isEqualTo(1);
      assertThat(engine.group().engines().getFirst().unfinished()).isEqualTo(1);
      running.cancel();
      running.completion().join();
    }
  }

  @Test
  void eachOfTheCompletionsOfARequestThatWaitsTooLongIsCounted() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).maxNumSeqs(1).open()) {
      GenerationHandle running = engine.submit(request("running").build());
      GenerationRequest.Builder three = request("three").sampling(LONG.toBuilder().n(3).build());
      Completion ended = engine.submit(three.queueTimeout(Duration.ofMillis(1)).build()).completion().join();
      assertThat(ended.choices())
          .hasSize(3)
          .allSatisfy(choice -> assertThat(choice.stopReason()).isEqualTo(new StopReason.Aborted("queue_timeout")));
      assertThat(aborted(engine)).isEqualTo(3);
      running.cancel();
      running.completion().join();
    }
  }

  @Test
  void requestThatRunsInTimeIsLeftAlone() {
    Duration timeout = Duration.ofSeconds(1);
    ScriptedRunner runner = ScriptedRunner.endless();
    runner.during(
        step -> {
          long end = System.nanoTime() + timeout.toNanos();
          while (step == 1 && System.nanoTime() - end < 0) {
            LockSupport.parkNanos(10_000_000);
          }
        });
    SamplingParams params = LONG.withMaxTokens(50);
    try (Engine engine = ScriptedEngine.open(runner)) {
      GenerationHandle handle = engine.submit(request("r").sampling(params).queueTimeout(timeout).build());
      assertThat(handle.completion().join().usage().generatedTokens()).isEqualTo(50);
    }
  }

  @Test
  void timeBeyondTheClockIsForEver() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abc"))) {
      GenerationRequest.Builder patient = request("p").queueTimeout(Duration.ofSeconds(Long.MAX_VALUE));
      assertThat(engine.submit(patient.build()).completion().join().text()).isEqualTo("abc");
    }
  }

  @Test
  void manyDeadlinesEachForItself() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).maxNumSeqs(1).open()) {
      GenerationHandle running = engine.submit(request("running").build());
      List<GenerationHandle> impatient = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        Duration timeout = i % 2 == 0 ? Duration.ofMillis(1 + i % 7) : Duration.ofHours(1);
        impatient.add(engine.submit(request("r" + i).queueTimeout(timeout).build()));
      }
      for (int i = 0; i < 200; i += 2) {
        assertThat(impatient.get(i).completion().join().finishReason()).isEqualTo(FinishReason.ABORT);
      }
      assertThat(aborted(engine)).isEqualTo(100);
      running.cancel();
      impatient.forEach(GenerationHandle::cancel);
      impatient.forEach(handle -> handle.completion().join());
    }
  }

  @Test
  void timeThatIsNotAbove0IsRefused() {
    assertThatThrownBy(() -> request("r").queueTimeout(Duration.ZERO).build())
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining("queue_timeout");
  }
}
