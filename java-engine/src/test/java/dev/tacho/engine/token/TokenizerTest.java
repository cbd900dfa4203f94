package dev.tacho.engine.token;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.InvalidRequestException;
import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.format.GgufWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a vocabulary means besides its ids: marks, ends, defaults; and how wrong ones are refused. */
class TokenizerTest {
  private static final int NORMAL = 1;
  private static final int UNKNOWN = 2;
  private static final int CONTROL = 3;
  private static final int USER_DEFINED = 4;
  private static final int UNUSED = 5;

  @TempDir Path directory;

  private Tokenizer tokenizer(GgufWriter writer) throws IOException {
    Path path = Files.write(directory.resolve("vocabulary.gguf"), writer.toByteArray());
    try (GgufFile file = GgufFile.open(path)) {
      return Tokenizer.of(file);
    }
  }

  /** A byte-level vocabulary of the printable ASCII characters and these tokens. */
  private static GgufWriter byteLevel(String rule, List<String> more, int... types) {
    List<String> tokens = new ArrayList<>();
    for (char c = '!'; c <= '~'; c++) {
      tokens.add(String.valueOf(c));
    }
    tokens.add("Ġ");
    tokens.addAll(more);
    int[] allTypes = new int[tokens.size()];
    for (int i = 0; i < allTypes.length; i++) {
      int index = i - (allTypes.length - types.length);
      allTypes[i] = index < 0 ? NORMAL : types[index];
    }
    return new GgufWriter()
        .string("tokenizer.ggml.model", "gpt2")
        .string("tokenizer.ggml.pre", rule)
        .strings("tokenizer.ggml.tokens", tokens)
        .integers("tokenizer.ggml.token_type", allTypes);
  }

  private static GgufWriter sentencePiece() {
    return new GgufWriter()
        .string("tokenizer.ggml.model", "llama")
        .strings(
            "tokenizer.ggml.tokens",
            List.of("<unk>", "<s>", "</s>", "▁", "a", "b", "▁a", "ab", "▁ab", "<0x0A>"))
        .floats("tokenizer.ggml.scores", 0, 0, 0, -9, -8, -7, -3, -2, -1, 0)
        .integers("tokenizer.ggml.token_type", UNKNOWN, CONTROL, CONTROL, 1, 1, 1, 1, 1, 1, 6);
  }

  @Test
  void sentencePieceDefaultsAreTheFormats() throws IOException {
    try (Tokenizer tokenizer = tokenizer(sentencePiece())) {
      assertThat(tokenizer.vocabSize()).isEqualTo(10);
      assertThat(tokenizer.bosTokenId()).hasValue(1);
      assertThat(tokenizer.eosTokenIds()).containsExactly(2);
      assertThat(tokenizer.encode("ab", true)).containsExactly(1, 8);
      assertThat(tokenizer.encode("a\nb", true)).containsExactly(1, 6, 9, 5);
      assertThat(tokenizer.encode("aab", false)).containsExactly(6, 7);
      assertThat(tokenizer.encode("z", false)).containsExactly(3, 0);
      assertThat(tokenizer.encode("", true)).containsExactly(1);
      assertThat(tokenizer.decode(new int[] {1, 8, 9, 6, 2}, true)).isEqualTo("ab\n a");
    }
  }

  @Test
  void flagsAndIdsOfTheFileGoFirst() throws IOException {
    GgufWriter writer =
        sentencePiece()
            .bool("tokenizer.ggml.add_bos_token", false)
            .bool("tokenizer.ggml.add_eos_token", true)
            .bool("tokenizer.ggml.add_space_prefix", false)
            .uint32("tokenizer.ggml.eot_token_id", 9);
    try (Tokenizer tokenizer = tokenizer(writer)) {
      assertThat(tokenizer.encode("ab", true)).containsExactly(7, 2);
      assertThat(tokenizer.encode(" ab", true)).containsExactly(8, 2);
      assertThat(tokenizer.decode(new int[] {8}, true)).isEqualTo(" ab");
      assertThat(tokenizer.eosTokenIds()).containsExactlyInAnyOrder(2, 9);
      assertThat(tokenizer.isSpecial(9)).isTrue();
    }
  }

  @Test
  void specialTokensAreRecognisedAndLeftOut() {
    Tokenizer tokenizer = TokenVectors.tokenizer("bpe-qwen2");
    int[] ids = tokenizer.encode("<|im_start|>a<think>", false);
    assertThat(ids).hasSize(3);
    assertThat(tokenizer.decode(ids, true)).isEqualTo("a<think>");
    assertThat(tokenizer.decode(ids, false)).isEqualTo("<|im_start|>a<think>");
    assertThat(tokenizer.tokenText(ids[0])).isEqualTo("<|im_start|>");
    assertThat(tokenizer.isSpecial(ids[0])).isTrue();
    assertThat(tokenizer.isSpecial(ids[2])).isFalse();
  }

  @Test
  void endsOfGenerationAreThoseOfTheFileAndMarksKnownByText() throws IOException {
    assertThat(TokenVectors.tokenizer("bpe-llama3").eosTokenIds())
        .containsExactlyInAnyOrder(379, 382, 383);
    assertThat(TokenVectors.tokenizer("spm-gemma").eosTokenIds()).containsExactlyInAnyOrder(1, 5);
    assertThat(TokenVectors.tokenizer("bpe-o200k").eosTokenIds())
        .as("<|end|> ends a message, not the answer")
        .containsExactlyInAnyOrder(377, 378, 383);
    int first = '~' - '!' + 2;
    GgufWriter writer =
        byteLevel("gpt-2", List.of("<|im_end|>", "</s>", "<EOT>"), USER_DEFINED, NORMAL, UNUSED)
            .strings("tokenizer.ggml.merges", List.of());
    try (Tokenizer tokenizer = tokenizer(writer)) {
      assertThat(tokenizer.eosTokenIds()).containsExactly(first);
      assertThat(tokenizer.decode(new int[] {first, first + 1}, true)).isEqualTo("</s>");
      assertThat(tokenizer.encode("</s>", false)).containsExactly(first + 1);
      assertThat(tokenizer.bosTokenId()).isEmpty();
    }
  }

  @Test
  void wholeWordsAndMergesInTheOrderOfTheFile() throws IOException {
    List<String> tokens = List.of("ab", "bc", "abc", "xyz");
    List<String> merges = List.of("b c", "a b", "a bc", "b c", "q nothing", "broken");
    int first = '~' - '!' + 2;
    try (Tokenizer tokenizer =
        tokenizer(byteLevel("gpt-2", tokens).strings("tokenizer.ggml.merges", merges))) {
      assertThat(tokenizer.encode("abc ab xyz", false))
          .containsExactly(first + 2, first - 1, first, first - 1, 'x' - '!', 'y' - '!', 'z' - '!');
    }
    try (Tokenizer tokenizer =
        tokenizer(byteLevel("llama-bpe", tokens).strings("tokenizer.ggml.merges", merges))) {
      assertThat(tokenizer.encode("xyz", false))
          .as("a word that is a token")
          .containsExactly(first + 3);
    }
  }

  @Test
  void mergesThatCannotBeLinesOfAFileOfMergesAreMerges() throws IOException {
    int first = '~' - '!' + 2;
    // In lines, the library takes the last for the head of a file and leaves it out.
    List<String> versions = List.of("er", "ver", "si", "on", "sion", "version", "#version", "#versions");
    List<String> merges = List.of("e r", "v er", "s i", "o n", "si on", "ver sion", "# version", "#version s");
    try (Tokenizer tokenizer =
        tokenizer(byteLevel("qwen2", versions).strings("tokenizer.ggml.merges", merges))) {
      assertThat(tokenizer.encode("#versions", false)).containsExactly(first + 7);
    }
    // In lines, it finds no place where this one ends and begins, and refuses all.
    List<String> tokens = List.of("ab", "c d", "abc d");
    try (Tokenizer tokenizer =
        tokenizer(byteLevel("gpt-2", tokens).strings("tokenizer.ggml.merges", List.of("a b", "ab c d")))) {
      assertThat(tokenizer.encode("ab", false)).containsExactly(first);
    }
  }

  /** What a document has to escape, and what is none of the characters that stand for bytes. */
  @Test
  void marksOfAnyCharactersAreRecognisedAndShown() throws IOException {
    List<String> marks =
        List.of("\"q\\", "\u0001\u001f\u007f", "\u0000", "\u00ff\u07ff", "\u4e16\uffff", "\ud83d\ude00 b");
    int[] types = IntStream.generate(() -> USER_DEFINED).limit(marks.size()).toArray();
    int first = '~' - '!' + 2;
    try (Tokenizer tokenizer =
        tokenizer(byteLevel("gpt-2", marks, types).strings("tokenizer.ggml.merges", List.of()))) {
      for (int i = 0; i < marks.size(); i++) {
        assertThat(tokenizer.encode("a" + marks.get(i) + "b", false))
            .as("mark %s", i)
            .containsExactly('a' - '!', first + i, 'b' - '!');
        assertThat(tokenizer.tokenText(first + i)).as("mark %s", i).isEqualTo(marks.get(i));
      }
    }
  }

  @Test
  void ofTwoTokensOfOneTextTheFirstIsEncoded() throws IOException {
    int first = '~' - '!' + 2;
    List<String> tokens = List.of("ab", "", "ab", "abc", "a");
    try (Tokenizer tokenizer =
        tokenizer(byteLevel("gpt-2", tokens).strings("tokenizer.ggml.merges", List.of("a b", "ab c")))) {
      assertThat(tokenizer.encode("ab abc a", false))
          .containsExactly(first, first - 1, first + 3, first - 1, 'a' - '!');
      assertThat(tokenizer.tokenText(first + 2)).isEqualTo("ab");
      assertThat(tokenizer.tokenText(first + 1)).isEmpty();
    }
  }

  @ParameterizedTest(name = "{0}: {1}")
  @CsvSource({
    "gpt-2, 1234",
    "llama-bpe, 123 4",
    "gpt-4o, 123 4",
    "deepseek-v3, 123 4",
    "falcon, 123 4",
    "qwen2, 1 2 3 4",
    "starcoder, 1 2 3 4",
    "refact, 1 2 3 4",
    "command-r, 1 2 3 4",
    "smollm, 1 2 3 4",
    "tekken, 1 2 3 4",
    "deepseek-coder, 1 2 3 4",
    "deepseek-llm, 1234"
  })
  void digitsAreGroupedByTheRule(String rule, String expected) throws IOException {
    List<String> tokens = List.of("12", "123", "1234");
    List<String> merges = List.of("1 2", "12 3", "123 4");
    try (Tokenizer tokenizer =
        tokenizer(byteLevel(rule, tokens).strings("tokenizer.ggml.merges", merges))) {
      String[] pieces =
          IntStream.of(tokenizer.encode("1234", false))
              .mapToObj(tokenizer::tokenText)
              .toArray(String[]::new);
      assertThat(String.join(" ", pieces)).isEqualTo(expected);
    }
  }

  @ParameterizedTest(name = "{0}")
  @ValueSource(
      strings = {
        "bailingmoe",
        "bloom",
        "chatglm-bpe",
        "command-r",
        "deepseek-coder",
        "deepseek-llm",
        "deepseek-v3",
        "default",
        "falcon",
        "glm4",
        "gpt-2",
        "gpt-4o",
        "llama-bpe",
        "llama-v3",
        "llama3",
        "mpt",
        "o200k",
        "qwen2",
        "qwen35",
        "refact",
        "seed-coder",
        "smollm",
        "starcoder",
        "tekken",
        "viking"
      })
  void everyRuleSplitsWithoutLoss(String rule) throws IOException {
    try (Tokenizer tokenizer =
        tokenizer(byteLevel(rule, List.of()).strings("tokenizer.ggml.merges", List.of()))) {
      String text = "It's 1234567 o'clock;  they'LL say: \"Yes!!\" -- (and   so on)   ";
      int[] ids = tokenizer.encode(text, false);
      assertThat(ids).hasSize(text.length());
      assertThat(tokenizer.decode(ids, true)).isEqualTo(text);
    }
  }

  @Test
  void loneSurrogatesCountAsReplacementCharacters() {
    for (String vocabulary : TokenVectors.VOCABULARIES) {
      Tokenizer tokenizer = TokenVectors.tokenizer(vocabulary);
      assertThat(tokenizer.encode("a\ud800b\udc00\ud83d\ude00", false))
          .isEqualTo(tokenizer.encode("a\ufffdb\ufffd😀", false));
    }
  }

  @Test
  void runsThatTheExpressionsCannotTakeAreRefused() {
    Tokenizer tokenizer = TokenVectors.tokenizer("bpe-o200k");
    assertThat(tokenizer.encode("A".repeat(Tokenizer.MAX_RUN_CHARS) + "\n1", false)).isNotEmpty();
    assertThatThrownBy(
            () -> tokenizer.encode("x\n" + "A".repeat(Tokenizer.MAX_RUN_CHARS + 1), false))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(
            "prompt: more than 1000000 characters of one kind in a row, from character 2 on");
  }

  @Test
  void idsOutsideTheVocabularyHaveNoText() {
    Tokenizer tokenizer = TokenVectors.tokenizer("spm-llama");
    assertThat(tokenizer.decode(new int[] {-1, tokenizer.vocabSize(), Integer.MAX_VALUE}, false))
        .isEmpty();
    assertThat(tokenizer.tokenText(-5)).isEmpty();
    assertThat(tokenizer.tokenBytes(1 << 20)).isEmpty();
  }

  @Test
  void manyThreadsEncodeAtOnceAndCloseWaits() throws Exception {
    Tokenizer tokenizer;
    try (GgufFile file = GgufFile.open(TokenVectors.file("bpe-llama3"))) {
      tokenizer = Tokenizer.of(file);
    }
    String text = "The quick brown fox. ".repeat(50);
    int[] expected = tokenizer.encode(text, true);
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      CountDownLatch encoding = new CountDownLatch(4);
      List<Future<Integer>> results = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        results.add(threads.submit(() -> encodeUntilClosed(tokenizer, text, expected, encoding)));
      }
      encoding.await();
      tokenizer.close();
      tokenizer.close();
      for (Future<Integer> result : results) {
        assertThat(result.get()).as("encodings that differ").isZero();
      }
    }
    assertThatThrownBy(() -> tokenizer.encode(text, true))
        .isInstanceOf(IllegalStateException.class);
    assertThat(tokenizer.decode(expected, true)).as("after close").isEqualTo(text);
  }

  private static int encodeUntilClosed(
      Tokenizer tokenizer, String text, int[] expected, CountDownLatch encoding) {
    int different = 0;
    try {
      while (true) {
        different += Arrays.equals(tokenizer.encode(text, true), expected) ? 0 : 1;
        encoding.countDown();
      }
    } catch (IllegalStateException closed) {
      return different;
    }
  }

  @Test
  void wrongVocabulariesAreRefusedWithTheKey() {
    assertRefused(new GgufWriter(), ModelFormatException.class, "tokenizer.ggml.model");
    assertRefused(
        new GgufWriter().string("tokenizer.ggml.model", "bert"),
        UnsupportedException.class,
        "\"bert\"",
        "gpt2");
    assertRefused(
        new GgufWriter().string("tokenizer.ggml.model", "llama"),
        ModelFormatException.class,
        "tokenizer.ggml.tokens");
    assertRefused(
        new GgufWriter()
            .string("tokenizer.ggml.model", "llama")
            .strings("tokenizer.ggml.tokens", List.of()),
        ModelFormatException.class,
        "at least one token");
    GgufWriter two = new GgufWriter().string("tokenizer.ggml.model", "llama");
    two.strings("tokenizer.ggml.tokens", List.of("a", "b"));
    assertRefused(two, ModelFormatException.class, "tokenizer.ggml.scores");
    assertRefused(
        two.floats("tokenizer.ggml.scores", 1f),
        ModelFormatException.class,
        "each of 2 tokens",
        "1 scores");
    assertRefused(
        new GgufWriter()
            .string("tokenizer.ggml.model", "llama")
            .strings("tokenizer.ggml.tokens", List.of("a", "a".repeat(1_000_000))),
        ModelFormatException.class,
        "of token 1",
        "at most 4096 characters",
        "found 1000000");
    assertRefused(
        byteLevel("gpt-2", List.of()), ModelFormatException.class, "tokenizer.ggml.merges");
    assertRefused(
        byteLevel("no-such", List.of()), UnsupportedException.class, "\"no-such\"", "llama-bpe");
    assertRefused(
        byteLevel("gpt-2", List.of("x"), 7), ModelFormatException.class, "0 to 6", "found 7");
    assertRefused(
        sentencePiece().uint32("tokenizer.ggml.eos_token_id", 10),
        ModelFormatException.class,
        "0 to 9",
        "found 10");
    assertRefused(
        sentencePiece().string("tokenizer.ggml.bos_token_id", "1"),
        ModelFormatException.class,
        "an integer");
  }

  private void assertRefused(GgufWriter writer, Class<? extends Exception> type, String... words) {
    assertThatThrownBy(() -> tokenizer(writer))
        .isInstanceOf(type)
        .hasMessageContainingAll(words)
        .hasMessageContaining(".gguf");
  }
}
