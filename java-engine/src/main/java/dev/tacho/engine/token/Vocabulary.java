package dev.tacho.engine.token;

import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.format.GgufStrings;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;

/**
 * The vocabulary of a GGUF file, read and checked: texts, types and the ids with a meaning. Lives only while a
 * tokenizer is being built.
 */
final class Vocabulary {
  private static final String PREFIX = "tokenizer.ggml.";
  private static final String TOKENS = PREFIX + "tokens";
  private static final String TOKEN_TYPE = PREFIX + "token_type";

  /** The merges of a SentencePiece vocabulary take time in proportion to the square of a token's length. */
  private static final int MAX_TOKEN_CHARS = 4096;

  private static final long NO_TOKEN = 0xffff_ffffL;

  /**
   * Texts of tokens that end a generation. Files name one end token, models use several; the community's engines go by
   * these texts.
   */
  private static final Set<String> END_TEXTS =
      Set.of(
          "<|eot_id|>",
          "<|eom_id|>",
          "<|im_end|>",
          "<|end|>",
          "<|return|>",
          "<|call|>",
          "<|calls|>",
          "<|flush|>",
          "<end_of_turn>",
          "<|endoftext|>",
          "<|end_of_text|>",
          "<end_of_utterance>",
          "</s>",
          "<eos>",
          "<EOT>",
          "_<EOT>",
          "[EOT]",
          "[EOS]",
          "<｜end▁of▁sentence｜>",
          "<turn|>",
          "<|tool_response>",
          "[e~[");

  private final GgufFile file;
  private final Kind kind;
  private final GgufStrings texts;
  private final TokenType[] types;
  private final TextIndex index;
  private final Set<Integer> endTokens = new TreeSet<>();

  /** The ways of splitting text that a file's {@code tokenizer.ggml.model} can name. */
  enum Kind {
    /** SentencePiece BPE: pieces with scores, spaces as U+2581, unknown characters as byte tokens. */
    SENTENCE_PIECE("llama"),
    /** Byte-level BPE: bytes as printable characters, a list of merges, a regular expression that splits first. */
    BYTE_LEVEL("gpt2");

    private final String modelName;

    Kind(String modelName) {
      this.modelName = modelName;
    }
  }

  private Vocabulary(GgufFile file, Kind kind, GgufStrings texts, TokenType[] types) {
    this.file = file;
    this.kind = kind;
    this.texts = texts;
    this.types = types;
    this.index = new TextIndex(texts);
  }

  /**
   * Reads the vocabulary.
   *
   * @throws ModelFormatException if it is missing, or lengths and types do not fit together
   * @throws UnsupportedException if it is of a kind that is neither of {@link Kind}
   */
  static Vocabulary read(GgufFile file) {
    String modelName = file.string(PREFIX + "model");
    Kind kind = kindOf(file, modelName);
    GgufStrings texts = file.strings(TOKENS);
    if (texts.isEmpty()) {
      throw fault(file, TOKENS, "at least one token", "an empty array");
    }
    for (int id = 0; id < texts.size(); id++) {
      // A character has a byte at least.
      int bytes = texts.end(id) - texts.start(id);
      int chars = bytes > MAX_TOKEN_CHARS ? texts.get(id).length() : bytes;
      if (chars > MAX_TOKEN_CHARS) {
        throw fault(file, TOKENS + " of token " + id, "at most " + MAX_TOKEN_CHARS + " characters", chars + "");
      }
    }
    TokenType[] types = readTypes(file, texts.size());
    Vocabulary vocabulary = new Vocabulary(file, kind, texts, types);
    vocabulary.correctTypes();
    return vocabulary;
  }

  /**
   * Converters mark the tokens that end a generation in different ways. One that the file names is a mark whatever its
   * type says. One known by its text is recognised in a prompt; but if its type says that it is text, as "&lt;/s&gt;"
   * is in vocabularies made from web pages, it stays text: it is shown, and ends nothing.
   */
  private void correctTypes() {
    boolean typed = file.contains(TOKEN_TYPE);
    for (String text : END_TEXTS) {
      OptionalInt id = id(text);
      if (id.isPresent()) {
        TokenType type = types[id.getAsInt()];
        types[id.getAsInt()] =
            typed && !type.isMatchedWhole() ? TokenType.USER_DEFINED : TokenType.CONTROL;
        if (types[id.getAsInt()] == TokenType.CONTROL) {
          endTokens.add(id.getAsInt());
        }
      }
    }
    for (String name : List.of("bos_token_id", "eos_token_id", "eot_token_id", "eom_token_id")) {
      specialId(name, -1).ifPresent(id -> types[id] = TokenType.CONTROL);
    }
  }

  private static Kind kindOf(GgufFile file, String modelName) {
    for (Kind kind : Kind.values()) {
      if (kind.modelName.equals(modelName)) {
        return kind;
      }
    }
    throw new UnsupportedException(
        "tokenizer model \"" + modelName + "\" of " + file.path(),
        "\"llama\" (SentencePiece BPE) and \"gpt2\" (byte-level BPE) can be built");
  }

  private static TokenType[] readTypes(GgufFile file, int size) {
    TokenType[] types = new TokenType[size];
    int[] numbers = file.contains(TOKEN_TYPE) ? file.integers(TOKEN_TYPE) : new int[0];
    if (file.contains(TOKEN_TYPE) && numbers.length < size) {
      throw fault(
          file, TOKEN_TYPE, "a type for each of " + size + " tokens", numbers.length + " types");
    }
    for (int id = 0; id < size; id++) {
      TokenType type = numbers.length == 0 ? TokenType.NORMAL : TokenType.ofId(numbers[id]);
      if (type == null) {
        throw fault(
            file,
            TOKEN_TYPE + " of token " + id,
            "0 to " + TokenType.BYTE.ordinal(),
            String.valueOf(numbers[id]));
      }
      types[id] = type;
    }
    return types;
  }

  Kind kind() {
    return kind;
  }

  int size() {
    return texts.size();
  }

  TokenType type(int id) {
    return types[id];
  }

  /** The texts of all tokens, by id. */
  GgufStrings texts() {
    return texts;
  }

  /** The first token with this text. */
  OptionalInt id(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    int id = id(bytes, 0, bytes.length);
    return id < 0 ? OptionalInt.empty() : OptionalInt.of(id);
  }

  /** The first token whose text is these bytes, or -1. */
  int id(byte[] utf8, int from, int to) {
    return index.find(utf8, from, to);
  }

  boolean contains(String text) {
    return id(text).isPresent();
  }

  /** Whether the token is the first with its text, and so the one that text is encoded to. */
  boolean isEncodable(int id) {
    return index.isFirst(id) && texts.end(id) > texts.start(id);
  }

  /**
   * The scores of a SentencePiece vocabulary.
   *
   * @throws ModelFormatException if there are fewer than tokens
   */
  float[] scores() {
    String key = PREFIX + "scores";
    float[] scores = file.floats(key);
    if (scores.length < size()) {
      throw fault(
          file, key, "a score for each of " + size() + " tokens", scores.length + " scores");
    }
    return scores;
  }

  /**
   * The merges of a byte-level vocabulary, as they stand in the file.
   *
   * @throws ModelFormatException if there are none
   */
  GgufStrings merges() {
    return file.strings(PREFIX + "merges");
  }

  /**
   * The rule that splits text before merging.
   *
   * @throws UnsupportedException if the file names one that is not known
   */
  PreTokenizer preTokenizer() {
    return PreTokenizer.named(file.string(PREFIX + "pre", "default"), file.path());
  }

  /** Whether a space is put before text. */
  boolean addsSpacePrefix() {
    return file.bool(PREFIX + "add_space_prefix", kind == Kind.SENTENCE_PIECE);
  }

  boolean addsBos(boolean ifAbsent) {
    return file.bool(PREFIX + "add_bos_token", ifAbsent);
  }

  boolean addsEos() {
    return file.bool(PREFIX + "add_eos_token", false);
  }

  OptionalInt bos() {
    return specialId("bos_token_id", kind == Kind.SENTENCE_PIECE ? 1 : -1);
  }

  OptionalInt eos() {
    return specialId("eos_token_id", kind == Kind.SENTENCE_PIECE ? 2 : -1);
  }

  OptionalInt unknown() {
    return specialId("unknown_token_id", kind == Kind.SENTENCE_PIECE ? 0 : -1);
  }

  /**
   * The tokens that end a generation: those the file names, and marks whose text says so. Where a vocabulary has
   * separate tokens for the end of a message and of an answer, {@code <|end|>} ends only the message.
   */
  Set<Integer> endOfGeneration() {
    Set<Integer> end = new LinkedHashSet<>();
    eos().ifPresent(end::add);
    specialId("eot_token_id", -1).ifPresent(end::add);
    specialId("eom_token_id", -1).ifPresent(end::add);
    end.addAll(endTokens);
    boolean endsAnswersApart =
        (contains("<|return|>") && contains("<|call|>"))
            || (contains("<|flush|>") && (contains("<|call|>") || contains("<|calls|>")));
    if (endsAnswersApart) {
      id("<|end|>").ifPresent(end::remove);
    }
    return end;
  }

  /** The name the model gives itself, in lower case. */
  String modelName() {
    return file.string("general.name", "").toLowerCase(Locale.ROOT);
  }

  String fileName() {
    return file.path().toString();
  }

  private OptionalInt specialId(String name, int ifAbsent) {
    String key = PREFIX + name;
    if (!file.contains(key)) {
      return ifAbsent >= 0 && ifAbsent < size() ? OptionalInt.of(ifAbsent) : OptionalInt.empty();
    }
    long id = file.integer(key);
    if (id == -1 || id == NO_TOKEN) {
      return OptionalInt.empty();
    }
    if (id < 0 || id >= size()) {
      throw fault(file, key, "a token id from 0 to " + (size() - 1), String.valueOf(id));
    }
    return OptionalInt.of((int) id);
  }

  private static ModelFormatException fault(
      GgufFile file, String field, String expected, String found) {
    return new ModelFormatException(file.path().toString(), -1, field, expected, found);
  }
}
