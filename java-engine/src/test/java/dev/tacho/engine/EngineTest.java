package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.tacho.metrics.event.FinishReason;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a caller of the API sees, over a scripted model. */
@Timeout(60)
class EngineTest {
  private static final SamplingParams LONG = SamplingParams.greedy().withMaxTokens(1000);

  @Test
  void completionHasTextTokensUsageAndTimings() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("there was a fox."))) {
      Completion answer = engine.complete("Once upon a time ", LONG);
      assertThat(answer.text()).isEqualTo("there was a fox.");
      assertThat(answer.tokenIds()).hasSize(17).endsWith(ByteCodec.EOS);
      assertThat(answer.finishReason()).isEqualTo(FinishReason.STOP);
      assertThat(answer.stopReason()).isNull();
      assertThat(answer.usage()).isEqualTo(new Usage(17, 0, 17));
      assertThat(answer.promptTokenIds()).hasSize(17).startsWith((int) 'O');
      Timings timings = answer.timings();
      assertThat(timings.timeToFirstToken()).isPositive().isLessThanOrEqualTo(timings.endToEnd());
      assertThat(timings.queue().plus(timings.prefill()).plus(timings.decode()))
          .isLessThanOrEqualTo(timings.endToEnd());
      assertThat(timings.queue()).isGreaterThanOrEqualTo(Duration.ZERO);
      assertThat(timings.prefill()).isPositive();
      assertThat(timings.decode()).isPositive();
    }
  }

  @Test
  void maxTokensEndsWithLength() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.endless())) {
      Completion answer = engine.complete("a", SamplingParams.greedy().withMaxTokens(5));
      assertThat(answer.text()).isEqualTo("xxxxx");
      assertThat(answer.finishReason()).isEqualTo(FinishReason.LENGTH);
    }
  }

  @Test
  void untilContextEndFillsTheContext() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.endless()).maxModelLen(40).open()) {
      Completion answer = engine.complete("ab", LONG.withMaxTokens(SamplingParams.UNTIL_CONTEXT_END));
      assertThat(answer.usage()).isEqualTo(new Usage(2, 0, 38));
      assertThat(answer.finishReason()).isEqualTo(FinishReason.LENGTH);
    }
  }

  @Test
  void stopTokenIsReportedAndHasNoText() {
    SamplingParams params = LONG.toBuilder().stopTokenIds(List.of((int) '!')).build();
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("Hi! there"))) {
      Completion answer = engine.complete("a", params);
      assertThat(answer.text()).isEqualTo("Hi");
      assertThat(answer.tokenIds()).containsExactly((int) 'H', (int) 'i', (int) '!');
      assertThat(answer.finishReason()).isEqualTo(FinishReason.STOP);
      assertThat(answer.stopReason()).isEqualTo(new StopReason.StopToken('!'));
    }
  }

  @Test
  void stopStringAcrossTokenBordersIsCutAndEndsTheSequence() {
    SamplingParams params = LONG.toBuilder().stop(List.of("nope", "END")).build();
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("a none EEND of it"))) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", params));
      List<String> pieces = new ArrayList<>();
      handle.deltas().forEach(delta -> pieces.add(delta.text()));
      assertThat(String.join("", pieces)).isEqualTo("a none E");
      Completion answer = handle.completion().join();
      assertThat(answer.text()).isEqualTo("a none E");
      assertThat(answer.finishReason()).isEqualTo(FinishReason.STOP);
      assertThat(answer.stopReason()).isEqualTo(new StopReason.StopString("END"));
      assertThat(answer.tokenIds()).hasSize("a none EEND".length());
    }
  }

  @Test
  void whatOnlyBeginsLikeAStopStringIsShownInTheEnd() {
    SamplingParams params = LONG.toBuilder().stop(List.of("END")).build();
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("the EN"))) {
      assertThat(engine.complete("a", params).text()).isEqualTo("the EN");
    }
  }

  @Test
  void stopStringsAreNotLookedForBeforeMinTokens() {
    SamplingParams params = LONG.toBuilder().stop(List.of("b")).minTokens(3).build();
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abcabc"))) {
      assertThat(engine.complete("a", params).text()).isEqualTo("abca");
    }
  }

  @Test
  void deltasNeverSplitACharacterAndJoinToTheCompletion() {
    String text = "Grüße, 世界 👩‍🚀 — naïve café";
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying(text))) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", LONG));
      StringBuilder joined = new StringBuilder();
      List<Integer> ids = new ArrayList<>();
      for (TokenDelta delta : handle.deltas()) {
        assertThat(delta.text()).doesNotContain("\uFFFD");
        if (!delta.text().isEmpty()) {
          assertThat(Character.isLowSurrogate(delta.text().charAt(0))).isFalse();
          assertThat(Character.isHighSurrogate(delta.text().charAt(delta.text().length() - 1))).isFalse();
        }
        joined.append(delta.text());
        ids.addAll(delta.tokenIds());
      }
      assertThat(joined).hasToString(text);
      assertThat(handle.completion().join().text()).isEqualTo(text);
      assertThat(handle.completion().join().tokenIds()).isEqualTo(ids);
    }
  }

  @Test
  void lastDeltaAloneHasTheFinishReason() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abc"))) {
      List<TokenDelta> deltas = new ArrayList<>();
      engine.submit(GenerationRequest.of("a", LONG)).deltas().forEach(deltas::add);
      assertThat(deltas.getLast().finishReason()).isEqualTo(FinishReason.STOP);
      assertThat(deltas.subList(0, deltas.size() - 1)).allMatch(d -> d.finishReason() == null);
    }
  }

  @Test
  void severalCompletionsShareThePromptAndStreamByIndex() {
    SamplingParams params = LONG.toBuilder().n(3).build();
    ScriptedRunner runner =
        new ScriptedRunner(s -> s.outputLength() < 2 ? s.requestId().charAt(0) : ByteCodec.EOS);
    try (Engine engine = ScriptedEngine.open(runner)) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("0123456789", params));
      String[] texts = {"", "", ""};
      handle.deltas().forEach(delta -> texts[delta.index()] += delta.text());
      assertThat(texts).containsExactly("00", "11", "22");
      Completion answer = handle.completion().join();
      assertThat(answer.choices()).extracting(Completion.Choice::text).containsExactly("00", "11", "22");
      assertThat(answer.usage()).isEqualTo(new Usage(10, 0, 9));
    }
  }

  @Test
  void logprobsComeOnePositionAToken() {
    SamplingParams params = LONG.toBuilder().logprobs(1).build();
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("ab"))) {
      Completion answer = engine.complete("a", params);
      TokenLogprob a = new TokenLogprob('a', "a", -0.5f);
      assertThat(answer.logprobs()).hasSize(3);
      assertThat(answer.logprobs().getFirst()).isEqualTo(new PositionLogprobs(a, 1, List.of(a)));
    }
  }

  @Test
  void cancelIsFeltWithinOneStepAndKeepsWhatIsThere() throws Exception {
    Semaphore steps = new Semaphore(0);
    ScriptedRunner runner = ScriptedRunner.endless().during(step -> steps.acquire());
    try (Engine engine = ScriptedEngine.open(runner)) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", LONG));
      steps.release(3);
      var deltas = handle.deltas().iterator();
      int seen = 0;
      while (seen < 3) {
        seen += deltas.next().tokenIds().size();
      }
      handle.cancel();
      handle.cancel();
      steps.release(1);
      Completion answer = handle.completion().get();
      assertThat(answer.text()).isEqualTo("xxx");
      assertThat(answer.finishReason()).isEqualTo(FinishReason.ABORT);
      assertThat(answer.stopReason()).isEqualTo(new StopReason.Aborted("cancelled"));
      handle.cancel();
      runner.during(step -> {});
      // The step that was launched behind the one in which it was felt.
      steps.release(1);
      assertThat(engine.complete("b", SamplingParams.greedy().withMaxTokens(2)).text()).isEqualTo("xx");
    }
  }

  @Test
  void aWaitingRequestCanBeCancelled() {
    Semaphore steps = new Semaphore(0);
    ScriptedRunner runner = ScriptedRunner.endless().during(step -> steps.acquire());
    try (Engine engine = ScriptedEngine.over(runner).maxNumSeqs(1).open()) {
      GenerationHandle first = engine.submit(GenerationRequest.of("a", LONG));
      first.accepted().join();
      GenerationHandle second = engine.submit(GenerationRequest.of("b", LONG));
      second.accepted().join();
      second.cancel();
      steps.release(2);
      Completion answer = second.completion().join();
      assertThat(answer.text()).isEmpty();
      assertThat(answer.timings().queue()).isEqualTo(Duration.ZERO);
      assertThat(answer.timings().timeToFirstToken()).isEqualTo(Duration.ZERO);
      first.cancel();
      steps.release(1000);
      assertThat(first.completion().join().finishReason()).isEqualTo(FinishReason.ABORT);
    }
  }

  @Test
  void interruptingAWaitingReaderCancelsItsRequest() throws Exception {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).open()) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", LONG.withMaxTokens(4000)));
      Thread reader =
          Thread.ofVirtual()
              .start(
                  () ->
                      assertThatThrownBy(() -> handle.deltas().forEach(d -> Thread.currentThread().interrupt()))
                          .isInstanceOf(CancellationException.class));
      reader.join();
      assertThat(handle.completion().get().finishReason()).isEqualTo(FinishReason.ABORT);
    }
  }

  @Test
  void promptOfExactlyTheContextIsTooLongWithBothNumbers() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.endless()).maxModelLen(16).open()) {
      PromptTooLongException problem =
          catchThrowableOfType(
              PromptTooLongException.class,
              () -> engine.complete("0123456789abcdef", SamplingParams.greedy().withMaxTokens(1)));
      assertThat(problem.promptTokens()).isEqualTo(16);
      assertThat(problem.limitTokens()).isEqualTo(16);
      assertThat(engine.complete("0123456789abcde", SamplingParams.greedy().withMaxTokens(1)).text()).isEqualTo("x");
    }
  }

  @Test
  void badTokenIdIsRefused() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.endless())) {
      GenerationHandle handle = engine.submit(GenerationRequest.builder().prompt(new int[] {1, 257}).build());
      assertThatThrownBy(() -> handle.completion().join())
          .isInstanceOf(CompletionException.class)
          .hasCauseInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("257 at position 1");
      assertThatThrownBy(() -> handle.accepted().join()).hasCauseInstanceOf(InvalidRequestException.class);
      assertThatThrownBy(() -> handle.deltas().iterator().hasNext()).isInstanceOf(InvalidRequestException.class);
    }
  }

  @Test
  void requestIdIsUniqueAmongTheLiveOnesOnly() {
    Semaphore steps = new Semaphore(0);
    ScriptedRunner runner = ScriptedRunner.saying("a").during(step -> steps.acquire());
    GenerationRequest request =
        GenerationRequest.builder().prompt("a").sampling(LONG).requestId("order-4711").build();
    try (Engine engine = ScriptedEngine.open(runner)) {
      GenerationHandle handle = engine.submit(request);
      assertThat(handle.requestId()).isEqualTo("order-4711");
      assertThatThrownBy(() -> engine.submit(request))
          .isInstanceOf(InvalidRequestException.class)
          .hasMessageContaining("order-4711");
      steps.release(100);
      handle.completion().join();
      assertThat(engine.submit(request).completion().join().text()).isEqualTo("a");
    }
  }

  @Test
  void deltasHaveOneReader() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("a"))) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", LONG));
      handle.onDelta(delta -> {});
      assertThatThrownBy(handle::deltas).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> handle.onDelta(delta -> {})).isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  void listenerRunsOnItsExecutorOrAVirtualThreadAndNeverOnOurs() throws Exception {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abc"));
        ExecutorService executor = Executors.newSingleThreadExecutor(task -> new Thread(task, "mine"))) {
      List<String> threads = new ArrayList<>();
      CountDownLatch ended = new CountDownLatch(1);
      engine
          .submit(GenerationRequest.of("a", LONG))
          .onDelta(
              executor,
              delta -> {
                threads.add(Thread.currentThread().getName());
                if (delta.finishReason() != null) {
                  ended.countDown();
                }
              });
      ended.await();
      assertThat(threads).isNotEmpty().containsOnly("mine");
      CountDownLatch virtual = new CountDownLatch(1);
      engine
          .submit(GenerationRequest.of("a", LONG))
          .onDelta(
              delta -> {
                if (Thread.currentThread().isVirtual()) {
                  virtual.countDown();
                }
              });
      virtual.await();
      Thread dependent = engine.submit(GenerationRequest.of("a", LONG)).completion()
          .thenApply(c -> Thread.currentThread()).join();
      assertThat(dependent.getName()).doesNotContain("tacho-output").doesNotContain("tacho-engine");
    }
  }

  @Test
  void listenerThatThrowsEndsItsOwnRequestAlone() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).open()) {
      GenerationHandle other = engine.submit(GenerationRequest.of("a", LONG));
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", LONG.withMaxTokens(4000)));
      IllegalStateException thrown = new IllegalStateException("listener");
      handle.onDelta(
          delta -> {
            throw thrown;
          });
      assertThatThrownBy(() -> handle.completion().join())
          .hasCauseInstanceOf(RequestFailedException.class)
          .hasRootCause(thrown);
      assertThat(other.completion().join().text()).hasSize(1000);
    }
  }

  @Test
  void executorThatRefusesEndsTheRequest() {
    Executor refusing =
        task -> {
          throw new RejectedExecutionException("full");
        };
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.unhurried())) {
      GenerationHandle handle = engine.submit(GenerationRequest.of("a", LONG.withMaxTokens(4000)));
      handle.onDelta(refusing, delta -> {});
      assertThatThrownBy(() -> handle.completion().join()).hasCauseInstanceOf(RequestFailedException.class);
    }
  }

  @Test
  void readerThatLeavesTooMuchIsAborted() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).slowReaderAfter(600, Long.MAX_VALUE).open()) {
      GenerationHandle unread = engine.submit(GenerationRequest.of("a", LONG));
      GenerationHandle slow = engine.submit(GenerationRequest.of("a", LONG.withMaxTokens(4000)));
      Iterable<TokenDelta> deltas = slow.deltas();
      Completion answer = slow.completion().join();
      assertThat(answer.finishReason()).isEqualTo(FinishReason.ABORT);
      assertThat(answer.stopReason()).isEqualTo(new StopReason.Aborted("slow_reader"));
      // A character counts 2 bytes and a token 4: the 101st token is too much.
      assertThat(answer.tokenIds()).hasSizeBetween(101, 3999);
      List<TokenDelta> late = new ArrayList<>();
      deltas.forEach(late::add);
      assertThat(late).hasSize(1);
      assertThat(late.getFirst().tokenIds()).isEqualTo(answer.tokenIds());
      assertThat(unread.completion().join().text()).as("without a reader nobody is slow").hasSize(1000);
    }
  }

  @Test
  void readerThatLeavesAnythingTooLongIsAborted() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).slowReaderAfter(1 << 20, 1).open()) {
      GenerationHandle slow = engine.submit(GenerationRequest.of("a", LONG.withMaxTokens(4000)));
      var _ = slow.deltas();
      assertThat(slow.completion().join().stopReason()).isEqualTo(new StopReason.Aborted("slow_reader"));
    }
  }

  @Test
  void encodeAndDecode() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.endless())) {
      assertThat(engine.encode("né")).containsExactly((int) 'n', 0xC3, 0xA9);
      assertThat(engine.decode(List.of((int) 'n', 0xC3, 0xA9))).isEqualTo("né");
      assertThat(engine.modelName()).isEqualTo("scripted");
      assertThat(engine.maxModelLen()).isEqualTo(4096);
    }
  }
}
