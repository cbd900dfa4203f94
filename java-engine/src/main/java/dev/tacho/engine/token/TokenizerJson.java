package dev.tacho.engine.token;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;
import java.util.Set;

/**
 * Writes a vocabulary as the {@code tokenizer.json} that the tokenizers library loads. Only what encoding needs is in
 * it: begin and end tokens are added, and text is decoded, on our side.
 */
final class TokenizerJson {
  private static final String SPACE_MARK = "▁";

  private final StringBuilder json = new StringBuilder();
  private final Vocabulary vocabulary;

  private TokenizerJson(Vocabulary vocabulary) {
    this.vocabulary = vocabulary;
  }

  /** The document for a vocabulary. */
  static String of(Vocabulary vocabulary) {
    TokenizerJson writer = new TokenizerJson(vocabulary);
    switch (vocabulary.kind()) {
      case SENTENCE_PIECE -> writer.writeSentencePiece();
      case BYTE_LEVEL -> writer.writeByteLevel();
    }
    return writer.json.toString();
  }

  private void writeSentencePiece() {
    begin();
    String spaces =
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" + SPACE_MARK + "\"}";
    json.append(",\"normalizer\":");
    if (vocabulary.addsSpacePrefix()) {
      json.append(
          "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\""
              + SPACE_MARK
              + "\"},");
      json.append(spaces).append("]}");
    } else {
      json.append(spaces);
    }
    json.append(
        ",\"pre_tokenizer\":null,\"model\":{\"type\":\"BPE\",\"fuse_unk\":true,\"byte_fallback\":true");
    OptionalInt unknown = vocabulary.unknown();
    if (unknown.isPresent() && vocabulary.isEncodable(unknown.getAsInt())) {
      json.append(",\"unk_token\":");
      string(vocabulary.text(unknown.getAsInt()));
    }
    writeVocabulary();
    writeMerges(SentencePieceMerges.of(vocabulary));
  }

  private void writeByteLevel() {
    PreTokenizer rule = vocabulary.preTokenizer();
    begin();
    json.append(",\"normalizer\":").append(rule.composes() ? "{\"type\":\"NFC\"}" : "null");
    json.append(",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    for (String pattern : rule.patterns()) {
      json.append("{\"type\":\"Split\",\"pattern\":{\"Regex\":");
      string(pattern);
      json.append("},\"behavior\":\"Isolated\",\"invert\":false},");
    }
    json.append("{\"type\":\"ByteLevel\",\"add_prefix_space\":");
    json.append(vocabulary.addsSpacePrefix());
    json.append(",\"trim_offsets\":false,\"use_regex\":false}]}");
    json.append(",\"model\":{\"type\":\"BPE\",\"ignore_merges\":").append(rule.keepsWholeWords());
    writeVocabulary();
    writeMerges(mergesOfTokens(vocabulary.merges()));
  }

  private void begin() {
    json.append("{\"version\":\"1.0\",\"added_tokens\":[");
    String separator = "";
    for (int id = 0; id < vocabulary.size(); id++) {
      TokenType type = vocabulary.type(id);
      if (type.isMatchedWhole() && vocabulary.isEncodable(id)) {
        json.append(separator).append("{\"id\":").append(id).append(",\"content\":");
        string(vocabulary.text(id));
        json.append(",\"single_word\":false,\"lstrip\":false,\"rstrip\":")
            .append(swallowsSpaces(id));
        json.append(",\"normalized\":false,\"special\":").append(type.isSpecial()).append('}');
        separator = ",";
      }
    }
    json.append("],\"post_processor\":null,\"decoder\":null");
  }

  /** Phi-3's marks take the spaces after them along, which GGUF has no field for. */
  private boolean swallowsSpaces(int id) {
    String name = vocabulary.modelName();
    return (name.contains("phi-3") || name.contains("phi3"))
        && !Set.of("<unk>", "<s>", "<|endoftext|>").contains(vocabulary.text(id));
  }

  private void writeVocabulary() {
    json.append(",\"vocab\":{");
    String separator = "";
    for (int id = 0; id < vocabulary.size(); id++) {
      if (vocabulary.isEncodable(id)) {
        json.append(separator);
        string(vocabulary.text(id));
        json.append(':').append(id);
        separator = ",";
      }
    }
    json.append('}');
  }

  /** Merges as left and right part. Those of what is no token, or twice, are left out: the library refuses them. */
  private List<String[]> mergesOfTokens(List<String> merges) {
    List<String[]> kept = new ArrayList<>(merges.size());
    Set<String> seen = HashSet.newHashSet(merges.size());
    for (String merge : merges) {
      int space = merge.indexOf(' ', 1);
      if (space < 0 || !seen.add(merge)) {
        continue;
      }
      String left = merge.substring(0, space);
      String right = merge.substring(space + 1);
      if (vocabulary.contains(left) && vocabulary.contains(right) && vocabulary.contains(left.concat(right))) {
        kept.add(new String[] {left, right});
      }
    }
    return kept;
  }

  /**
   * Writes merges and closes the document: as lines "left right", which the library reads in half the time that pairs
   * take, or all as pairs if one is there that it would not read as such a line.
   */
  private void writeMerges(List<String[]> merges) {
    boolean asLines = merges.stream().allMatch(TokenizerJson::isLine);
    json.append(",\"merges\":[");
    String begin = asLines ? "\"" : "[\"";
    String joint = asLines ? " " : "\",\"";
    String end = asLines ? "\"" : "\"]";
    String separator = "";
    for (String[] merge : merges) {
      json.append(separator).append(begin);
      escaped(merge[0]);
      json.append(joint);
      escaped(merge[1]);
      json.append(end);
      separator = ",";
    }
    json.append("]}}");
  }

  /** The library splits a line at each space, and takes one with this beginning for the head of a file. */
  private static boolean isLine(String[] merge) {
    return merge[0].indexOf(' ') < 0 && merge[1].indexOf(' ') < 0 && !merge[0].startsWith("#version");
  }

  private void string(String value) {
    json.append('"');
    escaped(value);
    json.append('"');
  }

  private static boolean isPlain(String value) {
    for (int i = 0; i < value.length(); i++) {
      char character = value.charAt(i);
      if (character < ' ' || character == '"' || character == '\\') {
        return false;
      }
    }
    return true;
  }

  private void escaped(String value) {
    if (isPlain(value)) {
      json.append(value);
      return;
    }
    for (int i = 0; i < value.length(); i++) {
      char character = value.charAt(i);
      if (character == '"' || character == '\\') {
        json.append('\\').append(character);
      } else if (character < ' ') {
        json.append(String.format(Locale.ROOT, "\\u%04x", (int) character));
      } else {
        json.append(character);
      }
    }
  }
}
