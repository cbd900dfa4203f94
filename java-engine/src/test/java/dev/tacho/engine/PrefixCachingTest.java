package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tacho.metrics.page.MetricsSnapshot;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What of a prompt is found in the prefix cache, in blocks of 16 tokens, and where that is shown. */
@Timeout(60)
class PrefixCachingTest {
  private static final SamplingParams ONE = SamplingParams.greedy().withMaxTokens(1);

  private static double counter(Engine engine, String name, Map<String, String> labels) {
    return engine.metrics().snapshot().counter("vllm:" + name, labels).orElseThrow().value();
  }

  /** A text of so many tokens, the first {@code shared} of which are the same for all. */
  private static String prompt(int shared, int tokens, char rest) {
    return "p".repeat(shared) + String.valueOf(rest).repeat(tokens - shared);
  }

  @ParameterizedTest(name = "{0} of {1} tokens shared: {2} found")
  @CsvSource({"15, 40, 0", "16, 40, 16", "17, 40, 16", "32, 32, 16", "33, 33, 32"})
  void userCase9WholeBlocksAreFoundAndTheLastTokenIsComputed(int shared, int tokens, int found) {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.endless())) {
      assertThat(engine.complete(prompt(shared, tokens, 'a'), ONE).usage().cachedTokens()).isZero();
      assertThat(engine.complete(prompt(shared, tokens, 'b'), ONE).usage().cachedTokens()).isEqualTo(found);
      assertThat(counter(engine, "prefix_cache_queries", Map.of())).isEqualTo(2 * tokens);
      assertThat(counter(engine, "prefix_cache_hits", Map.of())).isEqualTo(found);
      assertThat(counter(engine, "prompt_tokens", Map.of())).isEqualTo(2 * tokens);
      assertThat(counter(engine, "prompt_tokens_cached", Map.of())).isEqualTo(found);
      assertThat(counter(engine, "prompt_tokens_by_source", Map.of("source", "local_cache_hit"))).isEqualTo(found);
      assertThat(counter(engine, "prompt_tokens_by_source", Map.of("source", "local_compute")))
          .isEqualTo(2 * tokens - found);
    }
  }

  @Test
  void userCase10WarmCacheIsNoUsage() {
    ScriptedRunner runner = ScriptedRunner.endless();
    try (Engine engine = ScriptedEngine.over(runner).numBlocks(101).open()) {
      // Ten blocks: 159 tokens of prompt, and the one token that was generated and then computed.
      double[] duringSecondStep = new double[1];
      runner.during(
          step -> {
            if (step == 2) {
              duringSecondStep[0] = usage(engine.metrics().snapshot());
            }
          });
      engine.complete(prompt(0, 159, 'a'), ONE.withMaxTokens(2));
      assertThat(duringSecondStep[0]).isCloseTo(0.10, within(1e-12));
      assertThat(usage(engine.metrics().snapshot())).isZero();
      assertThat(engine.complete(prompt(0, 159, 'a'), ONE).usage().cachedTokens()).isEqualTo(144);
    }
  }

  private static double usage(MetricsSnapshot snapshot) {
    return snapshot.gauge("vllm:kv_cache_usage_perc", Map.of()).orElseThrow().value();
  }

  @Test
  void switchedOffNothingIsLookedFor() {
    ScriptedEngine off =
        ScriptedEngine.over(ScriptedRunner.endless()).with(options -> options.enablePrefixCaching(false));
    try (Engine engine = off.open()) {
      engine.complete(prompt(0, 64, 'a'), ONE);
      assertThat(engine.complete(prompt(0, 64, 'a'), ONE).usage().cachedTokens()).isZero();
      assertThat(counter(engine, "prefix_cache_queries", Map.of())).isZero();
      assertThat(engine.metrics().exposition()).contains("enable_prefix_caching=\"False\"");
    }
  }

  @Test
  void resetForgetsEverythingUnlessBlocksAreInUse() {
    ScriptedRunner runner = ScriptedRunner.unhurried();
    try (Engine engine = ScriptedEngine.open(runner)) {
      engine.complete(prompt(0, 64, 'a'), ONE);
      GenerationHandle running = engine.submit(GenerationRequest.of("b", ONE.withMaxTokens(4000)));
      assertThat(running.deltas().iterator().next().tokenIds()).isNotEmpty();
      assertThat(engine.resetPrefixCache()).isFalse();
      running.cancel();
      running.completion().join();
      assertThat(engine.complete(prompt(0, 64, 'a'), ONE).usage().cachedTokens()).isEqualTo(48);
      assertThat(engine.resetPrefixCache()).isTrue();
      assertThat(engine.complete(prompt(0, 64, 'a'), ONE).usage().cachedTokens()).isZero();
    }
  }

  @Test
  void generatedTokensAreFoundByThePromptThatContinuesThem() {
    try (Engine engine = ScriptedEngine.open(ScriptedRunner.endless())) {
      String answer = engine.complete(prompt(0, 16, 'a'), ONE.withMaxTokens(33)).text();
      assertThat(engine.complete(prompt(0, 16, 'a') + answer, ONE).usage().cachedTokens()).isEqualTo(48);
    }
  }
}
