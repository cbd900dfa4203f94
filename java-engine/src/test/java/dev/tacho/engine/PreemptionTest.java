package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.scheduler.Sequence;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

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
    return BundledModel.config().threads(1).maxNumSeqs(REQUESTS);
  }

  @BeforeAll
  static void runEachAlone() {
    try (Engine engine = Engine.open(config().enablePrefixCaching(false).build())) {
      for (int i = 0; i < REQUESTS; i++) {
        ALONE.add(engine.complete(prompt(i), GREEDY).tokenIds());
      }
    }
  }

  /** Ids of all requests, submitted at once; says how many of them lost their blocks twice or more. */
  private static List<List<Integer>> together(Engine engine, AtomicInteger preemptedTwice) {
    List<Generation> generations = new ArrayList<>();
    for (int i = 0; i < REQUESTS; i++) {
      GenerationRequest request =
          GenerationRequest.builder().prompt(prompt(i)).sampling(GREEDY).priority(i % 5).build();
      generations.add(engine.group().submit(request));
    }
    List<List<Integer>> ids = new ArrayList<>();
    for (Generation generation : generations) {
      ids.add(new GenerationHandle(generation).completion().join().tokenIds());
      Sequence sequence = Objects.requireNonNull(generation.records()[0].sequence());
      if (sequence.numPreemptions() >= 2) {
        preemptedTwice.incrementAndGet();
      }
    }
    return ids;
  }

  private static double counter(Engine engine, String name) {
    return engine.metrics().snapshot().counter("vllm:" + name, Map.of()).orElseThrow().value();
  }

  static Stream<Arguments> ways() {
    return Stream.of("fcfs", "priority")
        .flatMap(
            policy ->
                IntStream.range(0, 8)
                    .mapToObj(i -> Arguments.of(policy, (i & 1) != 0, (i & 2) != 0, (i & 4) != 0)));
  }

  @ParameterizedTest(name = "{0}, prefix caching {1}, async {2}, n-grams {3}")
  @MethodSource("ways")
  void hundredsOfPreemptionsChangeNoToken(String policy, boolean prefixCaching, boolean async, boolean ngrams) {
    EngineConfig.Builder scarce =
        config()
            .numGpuBlocksOverride(40)
            .schedulingPolicy(policy)
            .enablePrefixCaching(prefixCaching)
            .asyncScheduling(async);
    if (ngrams) {
      scarce.speculativeConfig(new SpeculativeConfig(3, 2, 4));
    }
    AtomicInteger preemptedTwice = new AtomicInteger();
    try (Engine engine = Engine.open(scarce.build())) {
      assertThat(together(engine, preemptedTwice)).isEqualTo(ALONE);
      assertThat(preemptedTwice.get()).isGreaterThanOrEqualTo(40);
      assertThat(counter(engine, "num_preemptions")).isGreaterThanOrEqualTo(200);
      assertThat(counter(engine, "prompt_tokens_cached") > 0).isEqualTo(prefixCaching);
      if (ngrams) {
        assertThat(counter(engine, "spec_decode_num_accepted_tokens")).isGreaterThan(100);
      }
    }
  }

  @Test
  void aWarmCacheChangesNoToken() {
    try (Engine engine = Engine.open(config().build())) {
      assertThat(together(engine, new AtomicInteger())).isEqualTo(ALONE);
      assertThat(together(engine, new AtomicInteger())).isEqualTo(ALONE);
      assertThat(counter(engine, "prompt_tokens_cached")).isGreaterThan(REQUESTS * 16.0);
    }
  }
}
