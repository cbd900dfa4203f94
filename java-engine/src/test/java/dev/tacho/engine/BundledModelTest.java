package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The whole way with the bundled model. */
@Timeout(120)
class BundledModelTest {
  private static final String PROMPT = "One day, a shy girl called Ivy wanted to learn how to swim.";
  private static final String OTHER = "Once there was a small dog who";
  private static final SamplingParams GREEDY = SamplingParams.greedy().withMaxTokens(40).withIgnoreEos(true);
  private static Engine engine;

  @BeforeAll
  static void open() {
    engine = Engine.open(BundledModel.config().build());
  }

  @AfterAll
  static void close() {
    engine.close();
  }

  private static List<GenerationHandle> submit(Engine to, int count, String prompt, SamplingParams sampling) {
    List<GenerationHandle> handles = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      handles.add(to.submit(GenerationRequest.of(prompt, sampling)));
    }
    return handles;
  }

  private static List<List<Integer>> ids(List<GenerationHandle> handles) {
    return handles.stream().map(handle -> handle.completion().join().tokenIds()).toList();
  }

  @Test
  void eightIdenticalGreedyRequestsTogetherEqualOneAlone() {
    List<Integer> alone = engine.complete(PROMPT, GREEDY).tokenIds();
    assertThat(ids(submit(engine, 8, PROMPT, GREEDY))).hasSize(8).containsOnly(alone);
  }

  /** User case 21: N identical greedy prompts give N times the same, whatever else is in the batch. */
  @ParameterizedTest(name = "batch of {0}")
  @ValueSource(ints = {1, 2, 3, 5, 7, 8})
  void userCase21IdenticalPromptsAmongPrefillsAndDecodes(int count) {
    List<Integer> alone = engine.complete(PROMPT, GREEDY).tokenIds();
    List<Integer> otherAlone = engine.complete(OTHER, GREEDY).tokenIds();
    List<GenerationHandle> others = submit(engine, 2, OTHER, GREEDY);
    List<GenerationHandle> same = submit(engine, count, PROMPT, GREEDY);
    List<GenerationHandle> late = submit(engine, 3, OTHER, GREEDY.withMaxTokens(7));
    assertThat(ids(same)).hasSize(count).containsOnly(alone);
    assertThat(ids(others)).containsOnly(otherAlone);
    assertThat(ids(late)).containsOnly(otherAlone.subList(0, 7));
  }

  @Test
  void promptOf300TokensInChunksOf32EqualsOnePiece() {
    List<Integer> prompt = engine.encode("The little fox went home. ".repeat(100)).subList(0, 300);
    GenerationRequest request = GenerationRequest.builder().prompt(prompt).sampling(GREEDY).build();
    List<Integer> onePiece = engine.submit(request).completion().join().tokenIds();
    try (Engine chunked =
        Engine.open(BundledModel.config().maxNumBatchedTokens(32).build())) {
      assertThat(chunked.submit(request).completion().join().tokenIds()).isEqualTo(onePiece);
    }
    try (Engine unchunked =
        Engine.open(BundledModel.config().enableChunkedPrefill(false).build())) {
      assertThat(unchunked.submit(request).completion().join().tokenIds()).isEqualTo(onePiece);
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 7, -3})
  void seedsAreReproducibleAndStreamingEqualsComplete(long seed) {
    SamplingParams params = SamplingParams.builder().temperature(0.9).topP(0.95).seed(seed).maxTokens(48).build();
    Completion whole = engine.complete(OTHER, params);
    StringBuilder text = new StringBuilder();
    List<Integer> streamedIds = new ArrayList<>();
    for (TokenDelta delta : engine.submit(GenerationRequest.of(OTHER, params)).deltas()) {
      text.append(delta.text());
      streamedIds.addAll(delta.tokenIds());
    }
    assertThat(text).hasToString(whole.text());
    assertThat(streamedIds).isEqualTo(whole.tokenIds());
    assertThat(engine.complete(OTHER, params.withSeed(seed + 1000)).tokenIds()).isNotEqualTo(whole.tokenIds());
  }

  @Test
  void completionIOfNHasTheSeedPlusI() {
    SamplingParams params =
        SamplingParams.builder().temperature(1).seed(5).maxTokens(20).ignoreEos(true).logprobs(2).build();
    Completion three = engine.complete(OTHER, params.toBuilder().n(3).build());
    for (int i = 0; i < 3; i++) {
      Completion one = engine.complete(OTHER, params.withSeed(5 + i));
      assertThat(three.choices().get(i).tokenIds()).isEqualTo(one.tokenIds());
      assertThat(three.choices().get(i).logprobs()).isEqualTo(one.logprobs());
    }
    assertThat(three.choices().get(0).tokenIds()).isNotEqualTo(three.choices().get(1).tokenIds());
    assertThat(three.usage().generatedTokens()).isEqualTo(60);
  }

  @Test
  void freshSeedsDifferFromRequestToRequestAndRepeatFromEngineToEngine() {
    SamplingParams params = SamplingParams.builder().temperature(1).maxTokens(20).ignoreEos(true).build();
    List<List<Integer>> runs = new ArrayList<>();
    for (int run = 0; run < 2; run++) {
      try (Engine seeded = Engine.open(BundledModel.config().seed(99).build())) {
        runs.add(seeded.complete(OTHER, params).tokenIds());
        runs.add(seeded.complete(OTHER, params).tokenIds());
      }
    }
    assertThat(runs.get(0)).isEqualTo(runs.get(2)).isNotEqualTo(runs.get(1));
    assertThat(runs.get(1)).isEqualTo(runs.get(3));
  }

  static Stream<String> providers() {
    return Stream.of("native", "vector", "scalar");
  }

  @ParameterizedTest
  @MethodSource("providers")
  void everyProviderGivesTheSameGreedyIds(String kernels) {
    List<Integer> expected = engine.complete(PROMPT, GREEDY).tokenIds();
    try (Engine other = Engine.open(BundledModel.config().kernels(kernels).build())) {
      assertThat(other.info().kernels()).startsWith(kernels);
      assertThat(other.complete(PROMPT, GREEDY).tokenIds()).isEqualTo(expected);
    }
  }

  @ParameterizedTest
  @MethodSource("providers")
  void aCacheOf8BitsGeneratesInEveryProviderAndTakesAQuarterAndTheScales(String kernels) {
    EngineConfig config = BundledModel.config().kernels(kernels).kvCacheDtype("q8_0").build();
    try (Engine small = Engine.open(config)) {
      assertThat(small.info().kvCacheDtype()).isEqualTo("q8_0");
      long headDim = 32;
      long bytes = engine.info().kvCache().bytes() / (4 * headDim) * (headDim + 2);
      assertThat(small.info().kvCache().bytes()).isEqualTo(bytes);
      assertThat(small.complete(PROMPT, GREEDY).tokenIds()).hasSize(40);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"float16", "bfloat16"})
  void halfPrecisionCachesGenerateAndTakeHalfTheMemory(String dtype) {
    try (Engine half = Engine.open(BundledModel.config().kvCacheDtype(dtype).build())) {
      assertThat(half.info().kvCacheDtype()).isEqualTo(dtype);
      assertThat(half.info().kvCache().bytes()).isEqualTo(engine.info().kvCache().bytes() / 2);
      assertThat(half.complete(PROMPT, GREEDY).tokenIds()).hasSize(40);
    }
  }

  @Test
  void infoSaysWhatWasSetUp() {
    EngineInfo info = engine.info();
    assertThat(info.modelName()).isEqualTo("tacho-tales");
    assertThat(info.architecture()).isEqualTo("llama");
    assertThat(info.maxModelLen()).isEqualTo(512);
    assertThat(info.numKvBlocks()).isEqualTo(1 + 8 * 32);
    assertThat(info.parameters()).isGreaterThan(100_000);
    assertThat(info.weights().bytes()).isGreaterThan(info.parameters());
    assertThat(Engine.kernels()).extracting(KernelStatus::id).contains("native", "vector", "scalar");
  }
}
