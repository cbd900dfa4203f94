package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the engine says about a request that waits, and about one that runs. */
@Timeout(60)
class ExplainTest {
  private static final SamplingParams LONG =
      SamplingParams.greedy().withMaxTokens(SamplingParams.UNTIL_CONTEXT_END);

  /** Prompts of different requests have no beginning in common. */
  private static GenerationRequest request(String id, int promptTokens, SamplingParams sampling) {
    String prompt = id.substring(0, 1).repeat(promptTokens);
    return GenerationRequest.builder()
        .prompt(new ByteCodec().encode(prompt))
        .sampling(sampling)
        .requestId(id)
        .build();
  }

  /** Submits a long request and waits for its first token. */
  private static GenerationHandle run(Engine engine, int promptTokens) {
    GenerationHandle handle = engine.submit(request("running", promptTokens, LONG));
    assertThat(handle.deltas().iterator().next().tokenIds()).isNotEmpty();
    return handle;
  }

  @Test
  void queueBehindAllPlaces() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).maxNumSeqs(1).open()) {
      GenerationHandle running = run(engine, 40);
      engine.submit(request("second", 40, LONG));
      engine.submit(request("third", 50, LONG.toBuilder().n(2).build()));
      RequestExplanation first = engine.explain("running").orElseThrow();
      assertThat(first.state()).isEqualTo(RequestExplanation.State.RUNNING);
      assertThat(first.position()).isZero();
      assertThat(first.reason()).contains("tokens are computed");
      RequestExplanation third = engine.explain("third").orElseThrow();
      assertThat(third.requestId()).isEqualTo("third");
      assertThat(third.state()).isEqualTo(RequestExplanation.State.WAITING);
      assertThat(third.position()).isEqualTo(2);
      assertThat(third.blocksNeeded()).isEqualTo(4);
      assertThat(third.blocksFree()).isBetween(0, 256 - 3);
      assertThat(third.reason()).isEqualTo("all 1 places (max-num-seqs) are taken");
      running.cancel();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aRunningRequestLacksItsLastTokenAtLeast(boolean async) {
    try (Engine engine =
        ScriptedEngine.over(ScriptedRunner.unhurried()).with(options -> options.asyncScheduling(async)).open()) {
      GenerationHandle running = run(engine, 5);
      Pattern pattern = Pattern.compile("it takes part in steps; (\\d+) of its (\\d+) tokens are computed");
      for (int i = 0; i < 20; i++) {
        Matcher said = pattern.matcher(engine.explain("running").orElseThrow().reason());
        assertThat(said.matches()).as("%s", said).isTrue();
        assertThat(Integer.parseInt(said.group(1))).isEqualTo(Integer.parseInt(said.group(2)) - 1);
      }
      running.cancel();
    }
  }

  @Test
  void tooFewKvBlocks() {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.unhurried()).numBlocks(301).open()) {
      GenerationHandle running = run(engine, 1000);
      engine.submit(request("big", 4000, LONG));
      engine.submit(request("small", 16, LONG));
      RequestExplanation big = engine.explain("big").orElseThrow();
      assertThat(big.state()).isEqualTo(RequestExplanation.State.WAITING);
      assertThat(big.position()).isEqualTo(1);
      assertThat(big.blocksNeeded()).isEqualTo(250);
      assertThat(big.blocksFree()).isLessThan(250);
      assertThat(big.reason()).isEqualTo("it needs 250 KV blocks, " + big.blocksFree() + " are free");
      assertThat(engine.explain("small").orElseThrow().reason()).isEqualTo("1 in the queue are before it");
      running.cancel();
    }
  }

  @Test
  void unknownRequestsAndClosedEnginesHaveNoExplanation() {
    Engine engine = ScriptedEngine.open(ScriptedRunner.saying("abc"));
    try (engine) {
      assertThat(engine.explain("nobody")).isEmpty();
      engine.submit(request("done", 3, SamplingParams.greedy().withMaxTokens(3))).completion().join();
      assertThat(engine.explain("done")).isEmpty();
    }
    assertThatThrownBy(() -> engine.explain("nobody")).isInstanceOf(EngineClosedException.class);
  }
}
