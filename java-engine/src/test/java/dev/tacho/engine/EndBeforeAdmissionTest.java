package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.page.MetricsSnapshot;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A request whose end is asked for before the engine has it is accepted, counted and ended once, never computed. */
@Timeout(60)
class EndBeforeAdmissionTest {
  private static double accepted(Engine engine) {
    return engine.metrics().snapshot().counter("tacho:requests_accepted", Map.of()).orElseThrow().value();
  }

  private static double aborted(MetricsSnapshot snapshot) {
    return snapshot.counter("vllm:request_success", Map.of("finished_reason", "abort")).orElseThrow().value();
  }

  @ParameterizedTest
  @ValueSource(strings = {"sleep", "cancelled"})
  void isCountedLikeAnyOther(String cause) throws Exception {
    CountDownLatch tokenising = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    ByteCodec codec =
        new ByteCodec(
            () -> {
              tokenising.countDown();
              Await.until("the test goes on", () -> goOn.getCount() == 0);
            });
    ScriptedEngine scripted = ScriptedEngine.over(ScriptedRunner.unhurried()).codec(codec);
    try (Engine engine = scripted.open()) {
      SamplingParams two = SamplingParams.builder().temperature(0).n(2).maxTokens(4).build();
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", two));
      tokenising.await();
      if (cause.equals("sleep")) {
        engine.sleep(1);
      } else {
        handle.cancel();
      }
      goOn.countDown();
      Completion ended = handle.completion().get(30, TimeUnit.SECONDS);
      assertThat(handle.accepted().get(30, TimeUnit.SECONDS)).hasSize(1);
      assertThat(ended.choices()).hasSize(2);
      for (Completion.Choice choice : ended.choices()) {
        assertThat(choice.finishReason()).isEqualTo(FinishReason.ABORT);
        assertThat(choice.stopReason()).isEqualTo(new StopReason.Aborted(cause));
      }
      assertThat(accepted(engine)).isEqualTo(2);
      assertThat(aborted(engine.metrics().snapshot())).isEqualTo(2);
      assertThat(scripted.steps()).isZero();
    }
  }

  @Test
  void endAskedForOnTheWayIntoTheInboxIsPassedOnAtOnce() {
    GenerationRequest request = GenerationRequest.of("a", SamplingParams.greedy());
    AtomicInteger passedOn = new AtomicInteger();
    Generation generation =
        new Generation("a", request, 0, Mailbox.Limits.DEFAULT, ended -> passedOn.incrementAndGet());
    generation.admitted();
    generation.cancel();
    assertThat(passedOn).as("before whoever brings it says that it is in").hasValue(1);
    generation.entered();
    generation.abort("again");
    assertThat(passedOn).hasValue(1);
    assertThat(generation.abortCause()).isEqualTo(Generation.CANCELLED);
  }
}
