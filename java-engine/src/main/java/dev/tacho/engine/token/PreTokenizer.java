package dev.tacho.engine.token;

import dev.tacho.engine.UnsupportedException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * How a byte-level vocabulary splits text before merging. A GGUF file only names the rule ({@code tokenizer.ggml.pre});
 * the expressions are those of the tokenizers that the names stand for. A value.
 *
 * @param patterns regular expressions applied one after another, each cutting out what it matches
 * @param keepsWholeWords whether a piece that is a token is not taken apart, even if no merges lead to it
 * @param composes whether text is composed (NFC) first
 * @param addsBos whether text begins with the begin-of-text token where the file does not say
 */
record PreTokenizer(List<String> patterns, boolean keepsWholeWords, boolean composes, boolean addsBos) {
  private static final String GPT2 =
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
  private static final String CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  private static final String SPACES = "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  private static final String BLOOM = " ?[^(\\s|.,!?…。，、।۔،)]+";
  private static final String ANY_DIGIT = "\\p{N}";
  private static final String UP_TO_3_DIGITS = "\\p{N}{1,3}";
  private static final String DEEPSEEK_IDEOGRAPHS = "[一-龥ࠀ-一가-퟿]+";

  /** The letters with case, as DeepSeek's first tokenizer lists them. */
  private static final String CASED_LETTERS =
        "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽ"
            + "Ა-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼ"
            + "ℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗ"
            + "Ａ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃";

  private static final Map<String, PreTokenizer> BY_NAME = new HashMap<>();

  static {
    put(
        rule(GPT2),
        "gpt-2", "phi-2", "gigachat", "mellum", "a.x-4.0", "mpt", "olmo", "jais", "trillion", "granite-docling",
        "exaone4");
    put(
        rule(words(UP_TO_3_DIGITS)).keepingWholeWords().addingBos(),
        "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2");
    put(rule(words(UP_TO_3_DIGITS)), "dbrx", "smaug-bpe", "chatglm-bpe");
    put(rule(words(UP_TO_3_DIGITS)).keepingWholeWords(), "glm4");
    put(rule(words(ANY_DIGIT)).composing(), "qwen2");
    put(
        rule(words(ANY_DIGIT)),
        "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2", "kormo");
    put(
        rule(
            CONTRACTIONS
                + "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*"
                + SPACES),
        "qwen35");
    put(
        rule(ANY_DIGIT, GPT2),
        "starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2");
    put(rule("[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"), "falcon");
    put(
        rule(
            "[\r\n]",
            "\\s?[" + CASED_LETTERS + "]+",
            "\\s?[!-/:-~！-／：-～‘-‟　-。]+",
            "\\s+$",
            DEEPSEEK_IDEOGRAPHS,
            "\\p{N}+"),
        "deepseek-llm");
    put(rule("[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_IDEOGRAPHS, ANY_DIGIT), "deepseek-coder");
    put(
        rule(
            UP_TO_3_DIGITS,
            "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                + "| ?[\\p{P}\\p{S}]+[\r\n]*"
                + SPACES),
        "deepseek-v3", "hunyuan-dense", "joyai-llm");
    put(rule(casedWords("", ANY_DIGIT)).keepingWholeWords().addingBos(), "tekken");
    put(
        rule(casedWords(CONTRACTIONS + "?", UP_TO_3_DIGITS)).keepingWholeWords(),
        "gpt-4o", "o200k", "llama4", "kanana2", "minimax-m2");
    put(
        rule(
            "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*"
                + "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"),
        "bailingmoe", "bailingmoe2", "llada-moe");
    put(
        rule(
            CONTRACTIONS
                + "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+"
                + SPACES),
        "seed-coder");
    put(rule(BLOOM), "bloom", "poro-chat", "gpt3-finnish");
    put(rule(BLOOM, ANY_DIGIT), "viking");
    // Files of older converters name no rule.
    put(rule("[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"), "default");
  }

  /**
   * The rule that a file names.
   *
   * @throws UnsupportedException if the name is not known; lists those that are
   */
  static PreTokenizer named(String name, Path file) {
    PreTokenizer rule = BY_NAME.get(name);
    if (rule == null) {
      throw new UnsupportedException(
          "pre-tokenizer \"" + name + "\" of " + file,
          "known are " + String.join(", ", new TreeSet<>(BY_NAME.keySet())));
    }
    return rule;
  }

  private static void put(PreTokenizer rule, String... names) {
    for (String name : names) {
      BY_NAME.put(name, rule);
    }
  }

  private static PreTokenizer rule(String... patterns) {
    return new PreTokenizer(List.of(patterns), false, false, false);
  }

  private PreTokenizer keepingWholeWords() {
    return new PreTokenizer(patterns, true, composes, addsBos);
  }

  private PreTokenizer composing() {
    return new PreTokenizer(patterns, keepsWholeWords, true, addsBos);
  }

  private PreTokenizer addingBos() {
    return new PreTokenizer(patterns, keepsWholeWords, composes, true);
  }

  /** Contractions, words with one character before, numbers, other signs with a space before, spaces. */
  private static String words(String number) {
    return CONTRACTIONS
        + "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
        + number
        + "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
        + SPACES;
  }

  /** As {@link #words}, but a word ends where small letters are followed by a capital. */
  private static String casedWords(String ending, String number) {
    String first = "[^\\r\\n\\p{L}\\p{N}]?";
    String upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
    String lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
    return (first + upper + "*" + lower + "+" + ending)
        + ("|" + first + upper + "+" + lower + "*" + ending)
        + ("|" + number + "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*")
        + SPACES;
  }
}
