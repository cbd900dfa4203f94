package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.kv.BlockTable;
import dev.tacho.metrics.event.FinishReason;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Faults injected into steps and into the text of a request. */
@Timeout(60)
class EngineFailureTest {
  private static final SamplingParams FIVE = SamplingParams.greedy().withMaxTokens(5);

  @Test
  void failedStepEndsItsOwnSequencesAndTheEngineServesOn() {
    Semaphore steps = new Semaphore(0);
    IllegalStateException fault = new IllegalStateException("kernel status 3");
    ScriptedRunner runner =
        ScriptedRunner.endless()
            .during(
                step -> {
                  steps.acquire();
                  if (step == 3) {
                    throw fault;
                  }
                });
    try (Engine engine = ScriptedEngine.over(runner).maxNumSeqs(1).open()) {
      GenerationHandle running = engine.submit(GenerationRequest.of("a", FIVE));
      running.accepted().join();
      GenerationHandle waiting = engine.submit(GenerationRequest.of("b", FIVE));
      waiting.accepted().join();
      steps.release(100);
      List<TokenDelta> deltas = new ArrayList<>();
      assertThatThrownBy(() -> running.deltas().forEach(deltas::add))
          .isInstanceOf(RequestFailedException.class)
          .hasCause(fault);
      assertThat(deltas.getLast().finishReason()).isEqualTo(FinishReason.ERROR);
      assertThat(deltas.stream().mapToInt(d -> d.tokenIds().size()).sum()).isEqualTo(2);
      assertThatThrownBy(() -> running.completion().join())
          .isInstanceOf(CompletionException.class)
          .hasCauseInstanceOf(RequestFailedException.class);
      assertThat(waiting.completion().join().text()).isEqualTo("xxxxx");
      assertThat(engine.state()).isEqualTo(EngineState.DEGRADED);
      assertThat(engine.complete("c", FIVE).text()).isEqualTo("xxxxx");
    }
  }

  @Test
  void completeThrowsWhatFailed() {
    ScriptedRunner runner =
        ScriptedRunner.endless()
            .during(
                step -> {
                  throw new IllegalArgumentException("bad shape");
                });
    try (Engine engine = ScriptedEngine.open(runner)) {
      assertThatThrownBy(() -> engine.complete("a", FIVE))
          .isInstanceOf(RequestFailedException.class)
          .hasMessageContaining("bad shape");
    }
  }

  @Test
  void secondFailedStepWithinAMinuteEndsTheEngine() {
    ScriptedRunner runner =
        ScriptedRunner.endless()
            .during(
                step -> {
                  throw new IllegalStateException("kernel status " + step);
                });
    try (Engine engine = ScriptedEngine.open(runner)) {
      assertThatThrownBy(() -> engine.complete("a", FIVE)).isInstanceOf(RequestFailedException.class);
      assertThatThrownBy(() -> engine.complete("b", FIVE))
          .isInstanceOf(EngineDeadException.class)
          .as("the second step of the first request fails behind the first one, which counts once")
          .hasMessageContaining("kernel status 3");
      assertIsDead(engine);
    }
    assertThat(runner.closed()).isTrue();
  }

  @Test
  void errorOfTheVirtualMachineEndsTheEngineAtOnceAndEveryRequest() {
    Semaphore steps = new Semaphore(0);
    ScriptedRunner runner =
        ScriptedRunner.endless()
            .during(
                step -> {
                  steps.acquire();
                  throw new OutOfMemoryError("injected");
                });
    try (Engine engine = ScriptedEngine.over(runner).maxNumSeqs(2).open()) {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        GenerationHandle handle = engine.submit(GenerationRequest.of("a", FIVE.toBuilder().n(2).build()));
        handle.accepted().join();
        handles.add(handle);
      }
      steps.release(100);
      for (GenerationHandle handle : handles) {
        assertThatThrownBy(() -> handle.completion().join())
            .hasCauseInstanceOf(EngineDeadException.class)
            .hasRootCauseInstanceOf(OutOfMemoryError.class);
      }
      assertIsDead(engine);
    }
  }

  @Test
  void blocksThatDoNotAddUpAfterAFailedStepEndTheEngine() {
    ScriptedRunner runner = ScriptedRunner.endless();
    ScriptedEngine scripted = ScriptedEngine.over(runner);
    try (Engine engine = scripted.open()) {
      runner.during(
          step -> {
            scripted.pool().allocate(1, new BlockTable());
            throw new IllegalStateException("torn");
          });
      assertThatThrownBy(() -> engine.complete("a", FIVE)).isInstanceOf(RequestFailedException.class);
      assertThatThrownBy(() -> engine.complete("b", FIVE))
          .isInstanceOf(EngineDeadException.class)
          .hasMessageContaining("do not add up");
      assertIsDead(engine);
    }
  }

  private static void assertIsDead(Engine engine) {
    assertThat(engine.state()).isEqualTo(EngineState.DEAD);
    assertThatThrownBy(() -> engine.submit(GenerationRequest.of("x", FIVE))).isInstanceOf(EngineDeadException.class);
  }

  /** A codec whose text fails when a certain prompt goes on. */
  private static final class FaultyCodec implements TextCodec {
    private final ByteCodec bytes = new ByteCodec();

    @Override
    public int[] encode(String text) {
      if (text.equals("untokenizable")) {
        throw new IllegalStateException("tokenizer");
      }
      return bytes.encode(text);
    }

    @Override
    public int[] encodePiece(String text) {
      return encode(text);
    }

    @Override
    public String decode(int[] ids) {
      return bytes.decode(ids);
    }

    @Override
    public String tokenText(int id) {
      return bytes.tokenText(id);
    }

    @Override
    public int vocabSize() {
      return bytes.vocabSize();
    }

    @Override
    public Set<Integer> eosTokenIds() {
      return bytes.eosTokenIds();
    }

    @Override
    public TextStream stream(int[] promptIds) {
      TextStream stream = bytes.stream(promptIds);
      boolean faulty = bytes.decode(promptIds).equals("faulty");
      return new TextStream() {
        @Override
        public String append(int id) {
          if (faulty) {
            throw new IllegalStateException("detokenizer");
          }
          return stream.append(id);
        }

        @Override
        public String flush() {
          return stream.flush();
        }
      };
    }

    @Override
    public void close() {}
  }

  @Test
  void faultInTheTextOfOneRequestEndsItAlone() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).codec(new FaultyCodec()).open()) {
      GenerationHandle good = engine.submit(GenerationRequest.of("good", FIVE.withMaxTokens(1000)));
      assertThatThrownBy(() -> engine.complete("faulty", FIVE.withMaxTokens(4000)))
          .isInstanceOf(RequestFailedException.class)
          .hasMessageContaining("detokenizer");
      assertThatThrownBy(() -> engine.complete("untokenizable", FIVE))
          .isInstanceOf(RequestFailedException.class)
          .hasMessageContaining("tokenizer");
      assertThat(good.completion().join().text()).hasSize(1000);
      assertThat(engine.metrics().exposition())
          .contains("vllm:request_success_total{engine=\"0\",finished_reason=\"error\",model_name=\"scripted\"} 1.0");
      assertThat(engine.state()).isEqualTo(EngineState.RUNNING);
    }
  }
}
