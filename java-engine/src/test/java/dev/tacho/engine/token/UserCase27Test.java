package dev.tacho.engine.token;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * User case 27: token ids equal those of the model's own tokenizer, special tokens, byte fallback, emoji and trailing
 * spaces included.
 */
class UserCase27Test {
  static final List<String> VOCABULARIES = TokenVectors.VOCABULARIES;
  static final List<String> EXCERPTS =
      List.of("excerpt-falcon", "excerpt-deepseek-llm", "excerpt-deepseek-coder", "excerpt-qwen35");

  private final List<String> differences = new ArrayList<>();

  @ParameterizedTest(name = "{0}")
  @FieldSource({"VOCABULARIES", "EXCERPTS"})
  void idsEqualTheModelsOwn(String vocabulary) {
    Tokenizer tokenizer = TokenVectors.tokenizer(vocabulary);
    JsonNode cases = TokenVectors.json(vocabulary).get("cases");
    for (JsonNode vector : cases) {
      String text = vector.get("text").asText();
      compareIds(text, tokenizer.encode(text, false), vector.get("ids"));
      String special = vector.has("ids_with_special") ? "ids_with_special" : "ids";
      compareIds(text, tokenizer.encode(text, true), vector.get(special));
    }
    assertThat(differences).isEmpty();
    assertThat(cases).hasSizeGreaterThan(100);
  }

  @Test
  void promptsOfConversationsHaveTheirIds() {
    for (JsonNode item : TokenVectors.json("conversations")) {
      Tokenizer tokenizer = TokenVectors.tokenizer(item.get("vocabulary").asText());
      boolean chat = item.get("kind").asText().equals("chat");
      String text = item.get(chat ? "rendered" : "prompt").asText();
      compareIds(text, tokenizer.encode(text, !chat), item.get("prompt_ids"));
    }
    assertThat(differences).isEmpty();
  }

  @ParameterizedTest(name = "{0}")
  @FieldSource("VOCABULARIES")
  void textOfIdsEqualsTheModelsOwn(String vocabulary) {
    Tokenizer tokenizer = TokenVectors.tokenizer(vocabulary);
    JsonNode vectors = TokenVectors.json(vocabulary);
    for (String list : List.of("cases", "random_ids")) {
      for (JsonNode vector : vectors.get(list)) {
        if (vector.has("decoded")) {
          int[] ids = TokenVectors.ids(vector.get("ids"));
          compareText(tokenizer.decode(ids, true), vector.get("decoded"));
          String whole = vector.has("decoded_keep_special") ? "decoded_keep_special" : "decoded";
          compareText(tokenizer.decode(ids, false), vector.get(whole));
        }
      }
    }
    for (JsonNode item : TokenVectors.json("conversations")) {
      if (item.get("vocabulary").asText().equals(vocabulary)) {
        int[] ids = TokenVectors.ids(item.get("output_ids"));
        compareText(tokenizer.decode(ids, true), item.get("text"));
        compareText(tokenizer.decode(ids, false), item.get("text_with_special"));
      }
    }
    assertThat(differences).isEmpty();
  }

  private void compareIds(String text, int[] actual, JsonNode expected) {
    if (!Arrays.equals(actual, TokenVectors.ids(expected))) {
      differences.add("\"" + text + "\": " + Arrays.toString(actual) + " instead of " + expected);
    }
  }

  private void compareText(String actual, JsonNode expected) {
    if (!actual.equals(expected.asText())) {
      differences.add("\"" + actual + "\" instead of " + expected);
    }
  }
}
