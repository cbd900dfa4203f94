package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The bundled model with far fewer KV blocks than its requests want: they lose them time and again. */
@Timeout(300)
class PreemptionTest {
  private static final int REQUESTS = 64;
  private static final SamplingParams GREEDY = SamplingParams.greedy().withMaxTokens(240).withIgnoreEos(true);
  private static final List<List<Integer>> ALONE = new ArrayList<>();

  /** Half of the prompts begin with the same 15 words. */
  private static String prompt(int i) {
    String beginning = i % 2 == 0 ? "The little fox went home. ".repeat(3) : "";
    return beginning + "Once there were " + i + " small dogs who";
  }

  private static EngineConfig.Builder config() {
    return BundledModel.config().maxNumSeqs(REQUESTS);
  }

  @BeforeAll
  static void runEachAlone() {
    try (Engine engine = Engine.open(config().enablePrefixCaching(false).build())) {
      for (int i = 0; i < REQUESTS; i++) {
        ALONE.add(engine.complete(prompt(i), GREEDY).tokenIds());
      }
    }
  }

  private static List<List<Integer>> together(Engine engine) {
    List<GenerationHandle> handles = new ArrayList<>();
    for (int i = 0; i < REQUESTS; i++) {
      handles.add(
          engine.submit(GenerationRequest.builder().prompt(prompt(i)).sampling(GREEDY).priority(i % 5).build()));
    }
    return handles.stream().map(handle -> handle.completion().join().tokenIds()).toList();
  }

  private static double counter(Engine engine, String name) {
    return engine.metrics().snapshot().counter("vllm:" + name, Map.of()).orElseThrow().value();
  }

  @ParameterizedTest(name = "{0}, prefix caching {1}")
  @CsvSource({"fcfs, true", "fcfs, false", "priority, true", "priority, false"})
  void hundredsOfPreemptionsChangeNoToken(String policy, boolean prefixCaching) {
    EngineConfig scarce =
        config().numGpuBlocksOverride(40).schedulingPolicy(policy).enablePrefixCaching(prefixCaching).build();
    try (Engine engine = Engine.open(scarce)) {
      assertThat(together(engine)).isEqualTo(ALONE);
      assertThat(counter(engine, "num_preemptions")).isGreaterThanOrEqualTo(200);
      assertThat(counter(engine, "prompt_tokens_cached") > 0).isEqualTo(prefixCaching);
    }
  }

  @Test
  void aWarmCacheChangesNoToken() {
    try (Engine engine = Engine.open(config().build())) {
      assertThat(together(engine)).isEqualTo(ALONE);
      assertThat(together(engine)).isEqualTo(ALONE);
      assertThat(counter(engine, "prompt_tokens_cached")).isGreaterThan(REQUESTS * 16.0);
    }
  }
}
