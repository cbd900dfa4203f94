package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.event.FinishReason;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Two steps in flight: what overlaps, what becomes of aborts and failures in between. */
@Timeout(60)
class AsyncSchedulingTest {
  private static final SamplingParams FIVE = SamplingParams.greedy().withMaxTokens(5);

  private static ScriptedEngine async(ScriptedRunner runner) {
    return ScriptedEngine.over(runner).with(options -> options.asyncScheduling(true));
  }

  private static double gauge(Engine engine, String name) {
    return engine.metrics().snapshot().gauge("vllm:" + name, Map.of()).orElseThrow().value();
  }

  private static void assertNothingIsHeld(ScriptedEngine scripted, Engine engine) {
    assertThat(gauge(engine, "num_requests_running")).isZero();
    assertThat(gauge(engine, "num_requests_waiting")).isZero();
    assertThat(gauge(engine, "kv_cache_usage_perc")).isZero();
    assertThat(scripted.pool().numFree()).isEqualTo(scripted.pool().numBlocks() - 1);
  }

  /** While step k computes, step k+1 has been launched and the client gets the token of step k-1. */
  @Test
  void planningAndDeliveryOverlapWithComputing() throws InterruptedException {
    int tokens = 50;
    Semaphore received = new Semaphore(0);
    AtomicInteger notLaunched = new AtomicInteger();
    ScriptedRunner runner = ScriptedRunner.endless();
    runner.during(
        step -> {
          if (step < tokens && runner.launches() < step + 1) {
            notLaunched.incrementAndGet();
          }
          if (step > 1) {
            // The token of the step before: if it came only after this step, nobody would ever release this.
            received.acquire();
          }
        });
    try (Engine engine = async(runner).open()) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", FIVE.withMaxTokens(tokens)));
      int count = 0;
      for (TokenDelta delta : handle.deltas()) {
        count += delta.tokenIds().size();
        received.release(delta.tokenIds().size());
      }
      assertThat(count).isEqualTo(tokens);
    }
    assertThat(notLaunched).as("steps that were computed before the next was launched").hasValue(0);
    assertThat(runner.steps()).as("no step is launched behind the one that surely ends the request").isEqualTo(tokens);
  }

  @Test
  void withoutItAStepIsAwaitedBeforeTheNextIsLaunched() {
    ScriptedRunner runner = ScriptedRunner.endless();
    AtomicInteger ahead = new AtomicInteger();
    runner.during(step -> ahead.accumulateAndGet(runner.launches() - step, Math::max));
    try (Engine engine = ScriptedEngine.over(runner).with(options -> options.asyncScheduling(false)).open()) {
      engine.complete("a", FIVE.withMaxTokens(50));
    }
    assertThat(ahead).hasValue(0);
  }

  /** Before the first step of each request there was nothing to compute; before the other four there was. */
  @ParameterizedTest(name = "async {0}")
  @ValueSource(booleans = {false, true})
  void timeWithoutAStepCountsWhileThereIsWork(boolean async) {
    ScriptedRunner runner = ScriptedRunner.endless().withGaps(1000);
    try (Engine engine = ScriptedEngine.over(runner).with(options -> options.asyncScheduling(async)).open()) {
      engine.complete("a", FIVE);
      engine.complete("b", FIVE);
      assertThat(engine.group().engines().getFirst().bubbleNanos()).isEqualTo(8000);
    }
  }

  /** The step behind an end-of-text has been launched when it comes; what it samples goes nowhere. */
  @Test
  void theStepBehindAnUnforeseenEndGivesNothing() {
    ScriptedRunner runner = ScriptedRunner.saying("abc");
    ScriptedEngine scripted = async(runner);
    try (Engine engine = scripted.open()) {
      Completion answer = engine.complete("x", FIVE.withMaxTokens(100));
      assertThat(answer.text()).isEqualTo("abc");
      assertThat(answer.usage().generatedTokens()).isEqualTo(4);
      assertThat(engine.complete("x", FIVE.withMaxTokens(100)).text()).isEqualTo("abc");
      assertThat(runner.steps()).isBetween(9, 10);
      assertNothingIsHeld(scripted, engine);
    }
  }

  /** Aborted while step {@code at} computes and the next waits behind it; the others go on. */
  @ParameterizedTest(name = "during step {0}")
  @ValueSource(ints = {1, 2, 3, 7, 20})
  void anAbortWithTwoStepsInFlightFreesItsBlocksAndNothingElse(int at) {
    CompletableFuture<GenerationHandle> submitted = new CompletableFuture<>();
    ScriptedRunner runner =
        ScriptedRunner.saying("abcdefghijklmnopqrstuvwxyz")
            .during(
                step -> {
                  GenerationHandle victim = submitted.join();
                  if (step == at) {
                    victim.cancel();
                  }
                });
    // Steps of 64 tokens: the victim's prompt of 300 takes five of them and waits before.
    ScriptedEngine scripted = async(runner).maxNumBatchedTokens(64);
    try (Engine engine = scripted.open()) {
      GenerationHandle other = engine.submit(GenerationRequest.of("o".repeat(40), FIVE.withMaxTokens(40)));
      GenerationHandle victim = engine.submit(GenerationRequest.of("v".repeat(300), FIVE.withMaxTokens(40)));
      victim.accepted().join();
      submitted.complete(victim);
      assertThat(victim.completion().join().finishReason()).isEqualTo(FinishReason.ABORT);
      assertThat("abcdefghijklmnopqrstuvwxyz").startsWith(victim.completion().join().text());
      assertThat(other.completion().join().text()).isEqualTo("abcdefghijklmnopqrstuvwxyz");
      assertNothingIsHeld(scripted, engine);
    }
  }

  @Test
  void aStepThatFailsTakesTheOneBehindItAlong() {
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
    ScriptedEngine scripted = async(runner).maxNumSeqs(2);
    try (Engine engine = scripted.open()) {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        handles.add(engine.submit(GenerationRequest.of("a", FIVE.withMaxTokens(20))));
        handles.getLast().accepted().join();
      }
      steps.release(1000);
      for (GenerationHandle running : handles.subList(0, 2)) {
        assertThatThrownBy(() -> running.completion().join())
            .isInstanceOf(CompletionException.class)
            .hasCauseInstanceOf(RequestFailedException.class)
            .hasRootCause(fault);
      }
      assertThat(handles.get(2).completion().join().tokenIds()).hasSize(20);
      assertThat(engine.state()).as("one failure, not two").isEqualTo(EngineState.DEGRADED);
      assertThat(engine.complete("c", FIVE).text()).isEqualTo("xxxxx");
      assertNothingIsHeld(scripted, engine);
    }
  }

  /** The step in flight is sound: its tokens are delivered before the requests end. */
  @Test
  void aStepThatCannotBeLaunchedFailsBehindTheOneInFlight() {
    ScriptedRunner runner = ScriptedRunner.endless();
    runner.atLaunch(
        launch -> {
          if (launch == 4) {
            throw new IllegalArgumentException("too large");
          }
        });
    ScriptedEngine scripted = async(runner);
    try (Engine engine = scripted.open()) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", FIVE.withMaxTokens(20)));
      List<Integer> ids = new ArrayList<>();
      Iterator<TokenDelta> deltas = handle.deltas().iterator();
      assertThatThrownBy(
              () -> {
                while (deltas.hasNext()) {
                  ids.addAll(deltas.next().tokenIds());
                }
              })
          .isInstanceOf(RequestFailedException.class)
          .hasMessageContaining("too large");
      assertThat(ids).hasSize(3);
      assertThat(engine.complete("b", FIVE).text()).isEqualTo("xxxxx");
      assertThat(engine.state()).isEqualTo(EngineState.DEGRADED);
      assertNothingIsHeld(scripted, engine);
    }
  }
}
