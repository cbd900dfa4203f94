package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** What parameters may say, and that they reach the sampler. */
class SamplingParamsTest {
  private static void refuses(String parameter, String problem, Consumer<SamplingParams.Builder> change) {
    SamplingParams.Builder builder = SamplingParams.builder();
    change.accept(builder);
    assertThatThrownBy(builder::build)
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(parameter)
        .hasMessageContaining(problem);
  }

  @Test
  void refusesWhatIsOutOfRange() {
    refuses("logprobs", "[-1, 20] (-1: none), is -5", b -> b.logprobs(-5));
    refuses("presence_penalty", "[-2, 2], is 2.1", b -> b.presencePenalty(2.1));
    refuses("presence_penalty", "is NaN", b -> b.presencePenalty(Double.NaN));
    refuses("frequency_penalty", "[-2, 2], is -2.5", b -> b.frequencyPenalty(-2.5));
    refuses("repetition_penalty", "above 0, is 0.0", b -> b.repetitionPenalty(0));
    refuses("repetition_penalty", "is Infinity", b -> b.repetitionPenalty(1e60));
    refuses("logit_bias", "is 100.5 for token 7", b -> b.logitBias(Map.of(7, 100.5f)));
    refuses("logit_bias", "token id -1", b -> b.logitBias(Map.of(-1, 1f)));
    refuses("allowed_token_ids", "token id -3", b -> b.allowedTokenIds(List.of(1, -3)));
    refuses("bad_words", "blank", b -> b.badWords(List.of("a", " ")));
  }

  @Test
  void keepsEverythingWhenChanged() {
    SamplingParams params =
        SamplingParams.builder()
            .presencePenalty(-2)
            .frequencyPenalty(2)
            .repetitionPenalty(0.5)
            .logitBias(Map.of(1, 100f))
            .allowedTokenIds(List.of(4))
            .badWords(List.of("x"))
            .build();
    assertThat(params.withMaxTokens(3).withMaxTokens(16)).isEqualTo(params);
  }

  @Test
  void idsOutsideTheVocabularyAreRefused() {
    assertThatThrownBy(() -> SamplingParams.builder().allowedTokenIds(List.of(9, 10)).build().checkTokenIds(10))
        .hasMessageContaining("allowed_token_ids")
        .hasMessageContaining("token id 10 is not in [0, 10)");
    assertThatThrownBy(() -> SamplingParams.builder().logitBias(Map.of(10, 1f)).build().checkTokenIds(10))
        .hasMessageContaining("logit_bias");
  }

  @Test
  void badWordsAreKeptOutWithAndWithoutASpaceBeforeThem() {
    // Here a space is a token of its own, so that form is longer and not looked for.
    assertThat(BadWords.tokenIds(List.of(" no"), new ByteCodec())).isDeepEqualTo(new int[][] {{'n', 'o'}});
  }
}
