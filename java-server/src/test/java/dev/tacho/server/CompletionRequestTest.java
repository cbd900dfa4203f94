package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.InvalidRequestException;
import dev.tacho.engine.SamplingParams;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CompletionRequestTest {
  private static CompletionRequest parse(String json) {
    return CompletionRequest.parse(json.replace('\'', '"').getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void fieldsThatAreLeftOutHaveTheDefaultsOfTheOpenAiApi() {
    CompletionRequest request = parse("{'prompt': 'a'}");
    assertThat(request.sampling().maxTokens()).isEqualTo(16);
    assertThat(request.sampling().temperature()).isEqualTo(1);
    assertThat(request.sampling().topP()).isEqualTo(1);
    assertThat(request.sampling().n()).isEqualTo(1);
    assertThat(request.sampling().logprobs()).isEqualTo(-1);
    assertThat(request.stream()).isFalse();
    assertThat(request.includeUsage()).isFalse();
  }

  @Test
  void nullIsTheSameAsLeftOut() {
    CompletionRequest request =
        parse("{'prompt': 'a', 'max_tokens': null, 'stop': null, 'seed': null, 'stream': null, 'suffix': null}");
    assertThat(request.sampling().maxTokens()).isEqualTo(16);
    assertThat(request.sampling().stop()).isEmpty();
    assertThat(request.sampling().seed()).isEmpty();
  }

  @Test
  void aPromptIsTextOrIdsOrAListOfThem() {
    assertThat(parse("{'prompt': 'a b'}").prompts()).containsExactly(new CompletionRequest.Prompt.Text("a b"));
    assertThat(parse("{'prompt': [1, 2]}").prompts())
        .containsExactly(new CompletionRequest.Prompt.TokenIds(List.of(1, 2)));
    assertThat(parse("{'prompt': ['a', [3]]}").prompts())
        .containsExactly(
            new CompletionRequest.Prompt.Text("a"), new CompletionRequest.Prompt.TokenIds(List.of(3)));
  }

  @Test
  void stopIsOneStringOrSeveral() {
    assertThat(parse("{'prompt': 'a', 'stop': 'x'}").sampling().stop()).containsExactly("x");
    assertThat(parse("{'prompt': 'a', 'stop': ['x', 'y']}").sampling().stop()).containsExactly("x", "y");
  }

  @Test
  void topKOfMinusOneKeepsAll() {
    assertThat(parse("{'prompt': 'a', 'top_k': -1}").sampling().topK()).isZero();
  }

  @Test
  void aSeedMayUseAll64Bits() {
    assertThat(parse("{'prompt': 'a', 'seed': -9223372036854775808}").sampling().seed()).hasValue(Long.MIN_VALUE);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{} | prompt",
        "{'prompt': 5} | prompt",
        "{'prompt': []} | prompt",
        "{'prompt': [1, 'a']} | prompt",
        "{'prompt': ['a', []]} | prompt",
        "{'prompt': 'a', 'max_tokens': '5'} | max_tokens",
        "{'prompt': 'a', 'max_tokens': 1.5} | max_tokens",
        "{'prompt': 'a', 'max_tokens': 99999999999} | max_tokens",
        "{'prompt': 'a', 'max_tokens': 2147483647} | max_tokens",
        "{'prompt': 'a', 'temperature': 'warm'} | temperature",
        "{'prompt': 'a', 'stream': 1} | stream",
        "{'prompt': 'a', 'stop': 7} | stop",
        "{'prompt': 'a', 'stop': ['x', 7]} | stop",
        "{'prompt': 'a', 'stop_token_ids': 7} | stop_token_ids",
        "{'prompt': 'a', 'top_k': -2} | top_k",
        "{'prompt': 'a', 'logprobs': -1} | logprobs",
        "{'prompt': 'a', 'seed': 1.5} | seed",
        "{'prompt': 'a', 'model': 3} | model",
        "{'prompt': 'a', 'stream_options': {'include_usage': true}} | stream_options",
        "{'prompt': 'a', 'stream': true, 'stream_options': {'x': 1}} | stream_options",
        "{'prompt': 'a', 'stream': true, 'stream_options': 1} | stream_options",
        "{'prompt': 'a', 'temprature': 1} | temprature",
        "{'prompt': 'a', 'echo': true} | echo",
        "{'prompt': 'a', 'best_of': 2} | best_of",
        "{'prompt': 'a', 'presence_penalty': 'much'} | presence_penalty",
        "{'prompt': 'a', 'logit_bias': [5]} | logit_bias",
        "{'prompt': 'a', 'logit_bias': {'x': 1}} | logit_bias",
        "{'prompt': 'a', 'logit_bias': {'5': '1'}} | logit_bias",
        "{'prompt': 'a', 'allowed_token_ids': []} | allowed_token_ids",
        "{'prompt': 'a', 'bad_words': 5} | bad_words",
        "{'prompt': 'a', 'priority': 0.5} | priority"
      })
  void aFieldAtFaultIsNamed(String json, String parameter) {
    assertThatThrownBy(() -> parse(json))
        .isInstanceOfSatisfying(
            ApiError.Thrown.class,
            thrown -> {
              assertThat(thrown.error().status()).isEqualTo(400);
              assertThat(thrown.error().parameter()).isEqualTo(parameter);
              assertThat(thrown.error().message()).contains(parameter);
            });
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{'prompt': 'a', 'max_tokens': 0} | max_tokens",
        "{'prompt': 'a', 'max_tokens': -1} | max_tokens",
        "{'prompt': 'a', 'temperature': 2.1} | temperature",
        "{'prompt': 'a', 'temperature': -0.1} | temperature",
        "{'prompt': 'a', 'top_p': 0} | top_p",
        "{'prompt': 'a', 'min_p': 1.1} | min_p",
        "{'prompt': 'a', 'n': 0} | n",
        "{'prompt': 'a', 'logprobs': 21} | logprobs",
        "{'prompt': 'a', 'stop': ''} | stop",
        "{'prompt': 'a', 'min_tokens': 17} | min_tokens"
      })
  void aValueOutOfRangeIsNamed(String json, String parameter) {
    assertThatThrownBy(() -> parse(json))
        .isInstanceOfSatisfying(
            InvalidRequestException.class, e -> assertThat(e.parameter()).isEqualTo(parameter));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "[]", "5", "{'prompt': 'a'} x", "{'prompt': 'a', 'prompt': 'b'}", "{prompt: 1}", "{"})
  void aBodyThatIsNoJsonObjectIsABadRequest(String json) {
    assertThatThrownBy(() -> parse(json))
        .isInstanceOfSatisfying(
            ApiError.Thrown.class,
            thrown -> {
              assertThat(thrown.error().status()).isEqualTo(400);
              assertThat(thrown.error().type()).isEqualTo("invalid_request_error");
            });
  }

  @Test
  void fieldsThatChangeTheLogitsReachTheSampler() {
    CompletionRequest request =
        parse(
            "{'prompt': 'a', 'presence_penalty': 0.5, 'frequency_penalty': -1, 'repetition_penalty': 1.25,"
                + " 'logit_bias': {'5': -2.5, '7': 100}, 'allowed_token_ids': [5, 7], 'bad_words': ['x y'],"
                + " 'priority': -4}");
    SamplingParams sampling = request.sampling();
    assertThat(sampling.presencePenalty()).isEqualTo(0.5f);
    assertThat(sampling.frequencyPenalty()).isEqualTo(-1);
    assertThat(sampling.repetitionPenalty()).isEqualTo(1.25f);
    assertThat(sampling.logitBias()).isEqualTo(Map.of(5, -2.5f, 7, 100f));
    assertThat(sampling.allowedTokenIds()).containsExactly(5, 7);
    assertThat(sampling.badWords()).containsExactly("x y");
    assertThat(request.toGeneration(0, "id", OptionalInt.of(1)).priority()).isEqualTo(-4);
    assertThat(request.toGeneration(0, "id", OptionalInt.of(1)).dataParallelRank()).hasValue(1);
  }

  @Test
  void valuesThatChangeNothingAreTaken() {
    CompletionRequest request =
        parse(
            "{'prompt': 'a', 'echo': false, 'best_of': 1, 'presence_penalty': 0, 'frequency_penalty': 0.0,"
                + " 'logit_bias': {}, 'suffix': '', 'user': 'u'}");
    assertThat(request.prompts()).hasSize(1);
  }
}
