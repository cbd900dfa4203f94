package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.stats.RequestSpeculation;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The bundled model, stepped in each way: one step after the other, two in flight, with drafts: the same tokens. */
@Timeout(120)
class SteppingTest {
  /** A way to step. */
  enum Way {
    ASYNC,
    DRAFTS,
    LONG_DRAFTS;

    EngineConfig.Builder config() {
      EngineConfig.Builder builder = BundledModel.config();
      return switch (this) {
        case ASYNC -> builder.asyncScheduling(true);
        case DRAFTS -> builder.speculativeConfig(new SpeculativeConfig(3, 1, 4));
        case LONG_DRAFTS -> builder.speculativeConfig(new SpeculativeConfig(7, 2, 3)).maxNumBatchedTokens(40);
      };
    }
  }

  private static final String PROMPT = "One day, a shy girl called Ivy wanted to learn how to swim.";
  private static final String REPETITIVE = "The cat sat. The dog ran. The cat sat. The dog ran. The cat";
  private static Engine plain;

  @BeforeAll
  static void open() {
    plain = Engine.open(BundledModel.config().asyncScheduling(false).build());
  }

  @AfterAll
  static void close() {
    plain.close();
  }

  private static SamplingParams.Builder params() {
    return SamplingParams.builder().maxTokens(48);
  }

  /** Greedy, drawn, several from one prompt, min_tokens, stop strings, log-probabilities; in one batch. */
  private static List<GenerationRequest> requests() {
    List<GenerationRequest> requests = new ArrayList<>();
    for (String prompt : new String[] {PROMPT, REPETITIVE}) {
      requests.add(GenerationRequest.of(prompt, SamplingParams.greedy().withMaxTokens(60).withIgnoreEos(true)));
      requests.add(GenerationRequest.of(prompt, params().temperature(0).minTokens(40).logprobs(3).build()));
      requests.add(GenerationRequest.of(prompt, params().temperature(0.8).seed(11).build()));
      requests.add(GenerationRequest.of(prompt, params().temperature(1.2).topP(0.9).seed(-4).n(3).build()));
      SamplingParams.Builder stopped = params().stop(List.of("the", "she"));
      requests.add(GenerationRequest.of(prompt, stopped.temperature(0.7).topK(8).seed(5).build()));
    }
    return requests;
  }

  private static List<Completion> together(Engine engine) {
    List<GenerationHandle> handles = requests().stream().map(engine::submit).toList();
    return handles.stream().map(handle -> handle.completion().join()).toList();
  }

  @ParameterizedTest
  @EnumSource
  void givesTheTokensOfPlainStepping(Way way) {
    List<Completion> expected = together(plain);
    assertThat(expected).anyMatch(c -> c.stopReason() != null);
    try (Engine engine = Engine.open(way.config().build())) {
      for (int round = 0; round < 3; round++) {
        List<Completion> actual = together(engine);
        for (int i = 0; i < expected.size(); i++) {
          assertThat(actual.get(i).choices()).as("request %s", i).isEqualTo(expected.get(i).choices());
          assertThat(actual.get(i).usage().generatedTokens()).isEqualTo(expected.get(i).usage().generatedTokens());
        }
      }
    }
  }

  private static double counter(Engine engine, String name, Map<String, String> labels) {
    return engine.metrics().snapshot().counter("vllm:" + name, labels).orElseThrow().value();
  }

  @Test
  void acceptedDraftsSaveStepsAndAreCountedByPosition() {
    SamplingParams greedy = SamplingParams.greedy().withMaxTokens(100).withIgnoreEos(true);
    EngineConfig config =
        BundledModel.config()
            .speculativeConfig(new SpeculativeConfig(3, 1, 4))
            .perRequestSpecDecodeMetrics("detailed")
            .build();
    try (Engine engine = Engine.open(config)) {
      Completion answer = engine.complete(REPETITIVE, greedy);
      double drafts = counter(engine, "spec_decode_num_drafts", Map.of());
      double tokens = counter(engine, "spec_decode_num_draft_tokens", Map.of());
      double accepted = counter(engine, "spec_decode_num_accepted_tokens", Map.of());
      assertThat(accepted).as("accepted of %s in %s drafts: %s", tokens, drafts, answer.text()).isPositive();
      assertThat(tokens).isBetween(drafts, 3 * drafts);
      RequestSpeculation own = Objects.requireNonNull(answer.speculation());
      assertThat((double) own.steps()).isEqualTo(drafts);
      assertThat((double) own.draftedTokens()).isEqualTo(tokens);
      assertThat((double) own.acceptedTokens()).isEqualTo(accepted);
      assertThat(own.acceptedByStep()).hasSize((int) drafts);
      double byPosition = 0;
      double before = Double.MAX_VALUE;
      for (int position = 0; position < 3; position++) {
        double here =
            counter(engine, "spec_decode_num_accepted_tokens_per_pos", Map.of("position", String.valueOf(position)));
        assertThat(here).isLessThanOrEqualTo(before);
        before = here;
        byPosition += here;
      }
      assertThat(byPosition).isEqualTo(accepted);
      // Each output is one sample of the time between tokens but the first.
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      long outputs = 1 + snapshot.histogram("vllm:inter_token_latency_seconds", Map.of()).orElseThrow().count();
      assertThat(answer.tokenIds()).hasSize(100);
      assertThat(outputs).isEqualTo((long) (100 - accepted));
    }
  }

  /** Where the context ends, drafts are cut, not written behind it. */
  @ParameterizedTest(name = "context {0}")
  @ValueSource(ints = {32, 33, 47, 48})
  void draftsEndWithTheContext(int maxModelLen) {
    SamplingParams greedy = SamplingParams.greedy().withMaxTokens(SamplingParams.UNTIL_CONTEXT_END).withIgnoreEos(true);
    List<Integer> prompt = plain.encode(REPETITIVE);
    assertThat(prompt.size()).isLessThan(32);
    try (Engine engine =
            Engine.open(
                BundledModel.config()
                    .maxModelLen(maxModelLen)
                    .speculativeConfig(new SpeculativeConfig(5, 1, 3))
                    .build());
        Engine without = Engine.open(BundledModel.config().maxModelLen(maxModelLen).build())) {
      assertThat(engine.complete(REPETITIVE, greedy).tokenIds())
          .hasSize(maxModelLen - prompt.size())
          .isEqualTo(without.complete(REPETITIVE, greedy).tokenIds());
    }
  }
}
