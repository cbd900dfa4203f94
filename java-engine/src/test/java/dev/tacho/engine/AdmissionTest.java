package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which requests are refused at the door, and that a refused one leaves nothing but a count. */
@Timeout(60)
class AdmissionTest {
  private static final SamplingParams TWO_TOKENS = SamplingParams.greedy().withMaxTokens(2);
  private static final String BY_REQUESTS = "max_num_queued_reqs";
  private static final String BY_TOKENS = "max_num_queued_tokens";

  private final Semaphore steps = new Semaphore(0);
  private final ScriptedRunner stepByStep = ScriptedRunner.endless().during(step -> steps.acquire());

  private static double rejections(Engine engine, String reason) {
    return engine.metrics().snapshot().counter("vllm:admission_rejections", Map.of("reason", reason)).orElseThrow()
        .value();
  }

  private static GenerationRequest request(int promptTokens, int n) {
    return GenerationRequest.builder()
        .prompt(new int[promptTokens])
        .sampling(TWO_TOKENS.toBuilder().n(n).build())
        .build();
  }

  private static OverloadedException refusal(Engine engine, GenerationRequest request) {
    return catchThrowableOfType(OverloadedException.class, () -> engine.submit(request));
  }

  @Test
  void userCase32FullQueueRefusesByUnfinishedSequences() {
    try (Engine engine = ScriptedEngine.over(stepByStep).with(options -> options.maxNumQueuedReqs(3)).open()) {
      GenerationHandle two = engine.submit(request(10, 2));
      OverloadedException refused = refusal(engine, request(10, 2));
      assertThat(refused.limitName()).isEqualTo(BY_REQUESTS);
      assertThat(refused.limit()).isEqualTo(3);
      assertThat(refused.current()).isEqualTo(2);
      assertThat(refused.retryAfter()).isPositive();
      GenerationHandle third = engine.submit(request(10, 1));
      assertThat(refusal(engine, request(10, 1)).current()).isEqualTo(3);
      steps.release(1000);
      assertThat(two.completion().join().usage().generatedTokens()).isEqualTo(4);
      assertThat(third.completion().join().usage().generatedTokens()).isEqualTo(2);
      assertThat(engine.submit(request(10, 3)).completion().join().choices()).hasSize(3);
      assertThat(rejections(engine, BY_REQUESTS)).isEqualTo(2);
      assertThat(rejections(engine, BY_TOKENS)).isZero();
      assertThat(engine.group().engines().getFirst().accepted()).isEqualTo(6);
    }
  }

  @Test
  void userCase32FullQueueRefusesByPromptTokensWithoutAFirstOutput() {
    try (Engine engine = ScriptedEngine.over(stepByStep).with(options -> options.maxNumQueuedTokens(20)).open()) {
      // The new request is not added to what is there: 0 and 10 are less than 20, 30 is not.
      GenerationHandle first = engine.submit(request(10, 1));
      GenerationHandle second = engine.submit(request(10, 2));
      OverloadedException refused = refusal(engine, request(1, 5));
      assertThat(refused.limitName()).isEqualTo(BY_TOKENS);
      assertThat(refused.limit()).isEqualTo(20);
      assertThat(refused.current()).isEqualTo(30);
      // Steps go on until each has its first output.
      steps.release(1000);
      first.completion().join();
      second.completion().join();
      assertThat(engine.submit(request(100, 1)).completion().join().usage().generatedTokens()).isEqualTo(2);
      assertThat(rejections(engine, BY_TOKENS)).isEqualTo(1);
      assertThat(rejections(engine, BY_REQUESTS)).isZero();
    }
  }

  @Test
  void firstOutputMakesRoomForThePromptsOfOthers() {
    try (Engine engine = ScriptedEngine.over(stepByStep).with(options -> options.maxNumQueuedTokens(5)).open()) {
      Iterator<TokenDelta> deltas = engine.submit(request(5, 1)).deltas().iterator();
      assertThat(refusal(engine, request(5, 1)).current()).isEqualTo(5);
      steps.release();
      assertThat(deltas.next().tokenIds()).hasSize(1);
      GenerationHandle next = engine.submit(request(5, 1));
      steps.release(1000);
      assertThat(next.completion().join().usage().generatedTokens()).isEqualTo(2);
    }
  }

  @Test
  void whatARequestHasTakenIsGivenBackOnceWhoeverEndsIt() {
    EngineConfig config =
        EngineConfig.builder().model(Path.of("none")).maxNumQueuedReqs(3).maxNumQueuedTokens(20).build();
    AdmissionGate gate = new AdmissionGate(config, new CounterPage());
    GenerationRequest request = request(10, 3);
    Generation generation =
        new Generation("a", request, 0, Mailbox.Limits.DEFAULT, ended -> {});
    gate.enter(3);
    gate.queue(new RequestIntake(config, new ByteCodec(), 100).prepare(generation));
    assertThat(catchThrowableOfType(OverloadedException.class, () -> gate.enter(1)).current()).isEqualTo(3);
    generation.records()[1].leavePrefill(gate);
    generation.records()[1].leave(gate);
    assertThat(catchThrowableOfType(OverloadedException.class, () -> gate.enter(1)).limitName()).isEqualTo(BY_TOKENS);
    generation.leave(gate);
    generation.leave(gate);
    gate.enter(3);
    assertThat(catchThrowableOfType(OverloadedException.class, () -> gate.enter(1)).current()).isEqualTo(3);
  }

  @Test
  void limitOf0RefusesEverything() {
    try (Engine engine = ScriptedEngine.over(stepByStep).with(options -> options.maxNumQueuedReqs(0)).open()) {
      assertThatThrownBy(() -> engine.complete("a", TWO_TOKENS)).isInstanceOf(OverloadedException.class);
      assertThat(engine.group().engines().getFirst().accepted()).isZero();
    }
  }

  /** User case 32: the number of requests is looked at first. */
  @Test
  void requestsAreLookedAtBeforeTokens() {
    ScriptedEngine both =
        ScriptedEngine.over(stepByStep).with(options -> options.maxNumQueuedReqs(0).maxNumQueuedTokens(0));
    try (Engine engine = both.open()) {
      assertThat(refusal(engine, request(1, 1)).limitName()).isEqualTo(BY_REQUESTS);
    }
  }

  @Test
  void placesComeBackFromRequestsThatEndInAnyWay() {
    ScriptedEngine one =
        ScriptedEngine.over(ScriptedRunner.unhurried())
            .maxModelLen(512)
            .with(options -> options.maxNumQueuedReqs(1).maxNumQueuedTokens(1));
    try (Engine engine = one.open()) {
      GenerationHandle tooLong = engine.submit(request(600, 1));
      assertThatThrownBy(() -> tooLong.completion().join()).hasCauseInstanceOf(PromptTooLongException.class);
      GenerationRequest endless =
          GenerationRequest.of("abc", SamplingParams.greedy().withMaxTokens(SamplingParams.UNTIL_CONTEXT_END));
      GenerationHandle cancelled = engine.submit(endless);
      assertThat(refusal(engine, endless).current()).isEqualTo(1);
      cancelled.cancel();
      cancelled.completion().join();
      assertThat(engine.complete("abc", TWO_TOKENS).text()).isEqualTo("xx");
      assertThat(engine.complete("abc", TWO_TOKENS.toBuilder().stop(List.of("x")).build()).text()).isEmpty();
      assertThat(engine.complete("abc", TWO_TOKENS).text()).isEqualTo("xx");
    }
  }

  @Test
  void idInUseTakesNoPlace() {
    try (Engine engine = ScriptedEngine.over(stepByStep).with(options -> options.maxNumQueuedReqs(2)).open()) {
      GenerationRequest named = GenerationRequest.builder().prompt("a").sampling(TWO_TOKENS).requestId("r").build();
      GenerationHandle first = engine.submit(named);
      assertThatThrownBy(() -> engine.submit(named)).isInstanceOf(InvalidRequestException.class);
      GenerationHandle second = engine.submit(request(1, 1));
      steps.release(1000);
      first.completion().join();
      second.completion().join();
    }
  }

  @Test
  void manyThreadsAtOnceNeverPassTheLimit() throws Exception {
    int threads = 8;
    int each = 50;
    try (Engine engine = ScriptedEngine.over(stepByStep).with(options -> options.maxNumQueuedReqs(100)).open();
        ExecutorService callers = Executors.newFixedThreadPool(threads)) {
      Callable<List<GenerationHandle>> caller =
          () -> {
            List<GenerationHandle> taken = new ArrayList<>();
            for (int i = 0; i < each; i++) {
              try {
                taken.add(engine.submit(request(3, 1)));
              } catch (OverloadedException e) {
                assertThat(e.current()).isEqualTo(100);
              }
            }
            return taken;
          };
      List<GenerationHandle> taken = new ArrayList<>();
      for (Future<List<GenerationHandle>> future : callers.invokeAll(Collections.nCopies(threads, caller))) {
        taken.addAll(future.get());
      }
      assertThat(taken).hasSize(100);
      assertThat(rejections(engine, BY_REQUESTS)).isEqualTo(threads * each - 100);
      steps.release(100_000);
      taken.forEach(handle -> handle.completion().join());
      assertThat(engine.submit(request(3, 100)).completion().join().choices()).hasSize(100);
    }
  }

  @Test
  void promptTokenizedTooLateIsRefusedAndCountedOnce() {
    CounterPage counters = new CounterPage();
    EngineConfig config = EngineConfig.builder().model(Path.of("m.gguf")).maxNumQueuedTokens(10).build();
    AdmissionGate gate = new AdmissionGate(config, counters);
    gate.enter(1);
    gate.enter(1);
    gate.queue(12);
    assertThatThrownBy(() -> gate.queue(1)).isInstanceOf(OverloadedException.class);
    assertThat(counters.get(EngineCounter.REJECTED_TOKENS)).isEqualTo(1);
    gate.dequeue(12);
    gate.queue(1);
  }

  @Test
  void retryAfterComesFromWhatHasLeftOfLate() {
    AtomicLong now = new AtomicLong();
    EngineConfig config =
        EngineConfig.builder().model(Path.of("m.gguf")).maxNumQueuedReqs(200).maxNumQueuedTokens(1000).build();
    AdmissionGate gate = new AdmissionGate(config, new CounterPage(), now::get);
    gate.enter(200);
    gate.queue(9000);
    // Nothing has left yet: the longest.
    assertThat(catchThrowableOfType(OverloadedException.class, () -> gate.enter(1)).retryAfter()).hasSeconds(60);
    // In four seconds two sequences a second ended and 500 prompt tokens a second were computed.
    now.set(4_000_000_000L);
    gate.leave(8);
    gate.dequeue(2000);
    assertThat(catchThrowableOfType(OverloadedException.class, () -> gate.enter(18)).retryAfter()).hasSeconds(5);
    assertThat(catchThrowableOfType(OverloadedException.class, () -> gate.enter(8)).retryAfter()).hasSeconds(14);
    // Eight seconds on nothing more has left, so it takes three times as long.
    now.set(12_000_000_000L);
    assertThat(catchThrowableOfType(OverloadedException.class, () -> gate.enter(18)).retryAfter()).hasSeconds(15);
    now.set(40_000_000_000L);
    assertThat(catchThrowableOfType(OverloadedException.class, () -> gate.enter(18)).retryAfter()).hasSeconds(60);
    gate.leave(192);
    assertThat(catchThrowableOfType(OverloadedException.class, () -> gate.enter(201)).retryAfter()).hasSeconds(1);
  }
}
