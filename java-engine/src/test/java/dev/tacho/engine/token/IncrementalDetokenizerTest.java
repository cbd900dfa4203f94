package dev.tacho.engine.token;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The parts are those of the reference's own stream, are whole characters, and join to the text of the whole. */
class IncrementalDetokenizerTest {
  static final List<String> VOCABULARIES = TokenVectors.VOCABULARIES;
  private static final int[] NO_PROMPT = {};

  static Stream<Arguments> vocabulariesAndSeeds() {
    return VOCABULARIES.stream()
        .flatMap(name -> IntStream.range(0, 5).mapToObj(seed -> Arguments.of(name, seed)));
  }

  @ParameterizedTest(name = "{0}")
  @FieldSource("VOCABULARIES")
  void partsEqualTheReference(String vocabulary) {
    Tokenizer tokenizer = TokenVectors.tokenizer(vocabulary);
    JsonNode vectors = TokenVectors.json(vocabulary);
    int checked = 0;
    for (String list : List.of("cases", "random_ids")) {
      for (JsonNode vector : vectors.get(list)) {
        if (vector.has("stream")) {
          checkStream(tokenizer, vector);
          checked++;
        }
      }
    }
    assertThat(checked).isGreaterThan(150);
  }

  /**
   * Where a prompt ends inside a character the reference repeats the whole prompt in its first part; a client wants
   * only the character that is finished now.
   */
  private static void checkStream(Tokenizer tokenizer, JsonNode vector) {
    int[] ids = TokenVectors.ids(vector.get("ids"));
    int[] prompt =
        vector.has("prompt_ids") ? TokenVectors.ids(vector.get("prompt_ids")) : NO_PROMPT;
    boolean repeatsPrompt = tokenizer.decode(prompt, true).endsWith("\ufffd");
    IncrementalDetokenizer detokenizer = tokenizer.detokenizer(prompt);
    List<String> expected = new ArrayList<>();
    List<String> actual = new ArrayList<>();
    for (JsonNode part : vector.get("stream")) {
      if (part.isObject()) {
        break;
      }
      String text = part.isNull() ? "" : part.asText();
      if (repeatsPrompt && !text.isEmpty()) {
        text = text.substring(text.offsetByCodePoints(text.length(), -1));
        repeatsPrompt = false;
      }
      expected.add(text);
      actual.add(detokenizer.append(ids[actual.size()]));
    }
    assertThat(actual).as("%s", vector).isEqualTo(expected);
  }

  @ParameterizedTest(name = "{0}, seed {1}")
  @MethodSource("vocabulariesAndSeeds")
  void partsJoinToTheTextOfTheWhole(String vocabulary, int seed) {
    Tokenizer tokenizer = TokenVectors.tokenizer(vocabulary);
    Random random = new Random(seed);
    for (int round = 0; round < 400; round++) {
      int[] ids = random.ints(1 + random.nextInt(40), -1, tokenizer.vocabSize() + 1).toArray();
      if (vocabulary.startsWith("spm")) {
        ids = withoutBrokenRows(tokenizer, ids);
      }
      StringBuilder joined = new StringBuilder();
      IncrementalDetokenizer detokenizer = tokenizer.detokenizer(NO_PROMPT);
      for (int id : ids) {
        joined.append(detokenizer.append(id));
      }
      joined.append(detokenizer.flush());
      assertThat(joined.toString()).as("%s", ids).isEqualTo(tokenizer.decode(ids, true));
    }
  }

  /**
   * A row of byte tokens that begins as UTF-8 and then is none turns into U+FFFD as a whole; what was streamed before
   * stays, so such rows are the one place where the parts and the whole differ. A text token is put after each byte
   * token here, or the row would soon break.
   */
  private static int[] withoutBrokenRows(Tokenizer tokenizer, int[] ids) {
    int letter = tokenizer.encode("x", false)[tokenizer.encode("x", false).length - 1];
    return IntStream.of(ids)
        .flatMap(id -> isByteToken(tokenizer, id) ? IntStream.of(id, letter) : IntStream.of(id))
        .toArray();
  }

  private static boolean isByteToken(Tokenizer tokenizer, int id) {
    return tokenizer.tokenBytes(id).length == 1;
  }

  @ParameterizedTest(name = "{0}, seed {1}")
  @MethodSource("vocabulariesAndSeeds")
  void textComesBackInWholeCharacters(String vocabulary, int seed) {
    Tokenizer tokenizer = TokenVectors.tokenizer(vocabulary);
    Random random = new Random(seed);
    int[][] ranges = {
      {0x20, 0x7f}, {0xa0, 0x250}, {0x400, 0x500}, {0x4e00, 0x9fff}, {0x1f300, 0x1f650}
    };
    for (int round = 0; round < 100; round++) {
      StringBuilder text = new StringBuilder();
      for (int i = random.nextInt(30); i >= 0; i--) {
        int[] range = ranges[random.nextInt(ranges.length)];
        text.appendCodePoint(random.nextInt(range[0], range[1]));
      }
      StringBuilder joined = new StringBuilder();
      IncrementalDetokenizer detokenizer = tokenizer.detokenizer(NO_PROMPT);
      for (int id : tokenizer.encode(text.toString(), true)) {
        String part = detokenizer.append(id);
        assertThat(part.isEmpty() || !Character.isHighSurrogate(part.charAt(part.length() - 1)))
            .isTrue();
        joined.append(part);
      }
      joined.append(detokenizer.flush());
      String expected = vocabulary.equals("bpe-qwen2") ? composed(text) : text.toString();
      assertThat(joined.toString()).isEqualTo(expected);
    }
  }

  private static String composed(StringBuilder text) {
    return Normalizer.normalize(text, Normalizer.Form.NFC);
  }

  @Test
  void leadingSpaceShowsOnlyAfterText() {
    Tokenizer tokenizer = TokenVectors.tokenizer("spm-llama");
    int[] word = tokenizer.encode("x", false);
    int bos = tokenizer.bosTokenId().orElseThrow();
    assertThat(joined(tokenizer.detokenizer(NO_PROMPT), word)).isEqualTo("x");
    assertThat(joined(tokenizer.detokenizer(new int[] {bos}), word)).isEqualTo("x");
    assertThat(joined(tokenizer.detokenizer(new int[] {bos, word[0], word[1]}), word))
        .isEqualTo(" x");
    Tokenizer gemma = TokenVectors.tokenizer("spm-gemma");
    assertThat(joined(gemma.detokenizer(NO_PROMPT), gemma.encode(" x", false))).isEqualTo(" x");
  }

  private static String joined(IncrementalDetokenizer detokenizer, int[] ids) {
    StringBuilder text = new StringBuilder();
    for (int id : ids) {
      text.append(detokenizer.append(id));
    }
    return text.append(detokenizer.flush()).toString();
  }

  @Test
  void flushGivesWhatIsUnfinishedOnceAsReplacements() {
    Tokenizer tokenizer = TokenVectors.tokenizer("bpe-gpt2");
    int[] euro = tokenizer.encode("€", false);
    assertThat(euro.length).isGreaterThan(1);
    IncrementalDetokenizer detokenizer = tokenizer.detokenizer(NO_PROMPT);
    assertThat(detokenizer.append(euro[0])).isEmpty();
    assertThat(detokenizer.flush()).isEqualTo("\ufffd");
    assertThat(detokenizer.flush()).isEmpty();
  }

  @Test
  void surrogatesWrittenAsUtf8AreThreeReplacements() {
    Tokenizer tokenizer = TokenVectors.tokenizer("bpe-gpt2");
    List<Integer> ids = new ArrayList<>(Collections.nCopies(3, 0));
    byte[] surrogate = {(byte) 0xed, (byte) 0xa0, (byte) 0x80};
    for (int id = 0; id < tokenizer.vocabSize(); id++) {
      byte[] bytes = tokenizer.tokenBytes(id);
      for (int i = 0; i < surrogate.length; i++) {
        if (bytes.length == 1 && bytes[0] == surrogate[i]) {
          ids.set(i, id);
        }
      }
    }
    int[] array = ids.stream().mapToInt(Integer::intValue).toArray();
    assertThat(tokenizer.decode(array, true)).isEqualTo("\ufffd\ufffd\ufffd");
  }

  @Test
  void workAndMemoryOfATokenDoNotGrowWithTheText() {
    Tokenizer tokenizer = TokenVectors.tokenizer("bpe-gpt2");
    int[] euro = tokenizer.encode("€", false);
    IncrementalDetokenizer detokenizer = tokenizer.detokenizer(NO_PROMPT);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    int rounds = 20_000;
    for (int round = 0; round < rounds; round++) {
      append(detokenizer, euro);
    }
    long before = threads.getCurrentThreadAllocatedBytes();
    for (int round = 0; round < rounds; round++) {
      append(detokenizer, euro);
    }
    long bytesPerCharacter = (threads.getCurrentThreadAllocatedBytes() - before) / rounds;
    assertThat(bytesPerCharacter).as("one String of one character").isLessThanOrEqualTo(96);
  }

  private static void append(IncrementalDetokenizer detokenizer, int[] ids) {
    for (int id : ids) {
      detokenizer.append(id);
    }
  }
}
