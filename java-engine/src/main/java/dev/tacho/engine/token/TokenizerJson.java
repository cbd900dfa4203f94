package dev.tacho.engine.token;

import dev.tacho.engine.format.GgufStrings;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.OptionalInt;
import java.util.Set;

/**
 * Writes a vocabulary as the {@code tokenizer.json} that the tokenizers library loads. Only what encoding needs is in
 * it: begin and end tokens are added, and text is decoded, on our side.
 *
 * <p>It is made of the bytes in the file, and pure ASCII, other characters as escapes: no object is made for any of a
 * hundred thousand tokens and more merges, and the document takes a byte a character on its way to the library.
 */
final class TokenizerJson {
  private static final String SPACE_MARK = "▁";
  /** Of a byte of UTF-8, at most. */
  private static final int ESCAPE_BYTES = "\\uffff".length();

  private static final int MAX_BYTES = Integer.MAX_VALUE - 8;

  private static final byte[] HEX = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] FILE_HEAD = "#version".getBytes(StandardCharsets.US_ASCII);

  private final Vocabulary vocabulary;
  private final GgufStrings texts;
  private byte[] json;
  private int length;

  private TokenizerJson(Vocabulary vocabulary) {
    this.vocabulary = vocabulary;
    this.texts = vocabulary.texts();
    // Quotes, a number and a comma take as much as the length in the file; merges come on top.
    this.json = new byte[Math.max(4096, texts.bytes().length)];
  }

  /** The document for a vocabulary. */
  static String of(Vocabulary vocabulary) {
    TokenizerJson writer = new TokenizerJson(vocabulary);
    switch (vocabulary.kind()) {
      case SENTENCE_PIECE -> writer.writeSentencePiece();
      case BYTE_LEVEL -> writer.writeByteLevel();
    }
    return new String(writer.json, 0, writer.length, StandardCharsets.ISO_8859_1);
  }

  private void writeSentencePiece() {
    begin();
    put(",\"normalizer\":");
    if (vocabulary.addsSpacePrefix()) {
      put("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":");
      string(SPACE_MARK);
      put("},");
      putSpaces();
      put("]}");
    } else {
      putSpaces();
    }
    put(",\"pre_tokenizer\":null,\"model\":{\"type\":\"BPE\",\"fuse_unk\":true,\"byte_fallback\":true");
    OptionalInt unknown = vocabulary.unknown();
    if (unknown.isPresent() && vocabulary.isEncodable(unknown.getAsInt())) {
      put(",\"unk_token\":");
      token(unknown.getAsInt());
    }
    writeVocabulary();
    writeMerges(SentencePieceMerges.of(vocabulary));
  }

  private void putSpaces() {
    put("{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":");
    string(SPACE_MARK);
    put("}");
  }

  private void writeByteLevel() {
    PreTokenizer rule = vocabulary.preTokenizer();
    begin();
    put(",\"normalizer\":");
    put(rule.composes() ? "{\"type\":\"NFC\"}" : "null");
    put(",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    for (String pattern : rule.patterns()) {
      put("{\"type\":\"Split\",\"pattern\":{\"Regex\":");
      string(pattern);
      put("},\"behavior\":\"Isolated\",\"invert\":false},");
    }
    put("{\"type\":\"ByteLevel\",\"add_prefix_space\":");
    put(Boolean.toString(vocabulary.addsSpacePrefix()));
    put(",\"trim_offsets\":false,\"use_regex\":false}]}");
    put(",\"model\":{\"type\":\"BPE\",\"ignore_merges\":");
    put(Boolean.toString(rule.keepsWholeWords()));
    writeVocabulary();
    writeMerges(mergesOfTokens(vocabulary.merges()));
  }

  private void begin() {
    put("{\"version\":\"1.0\",\"added_tokens\":[");
    String separator = "";
    for (int id = 0; id < vocabulary.size(); id++) {
      TokenType type = vocabulary.type(id);
      if (type.isMatchedWhole() && vocabulary.isEncodable(id)) {
        put(separator);
        put("{\"id\":");
        number(id);
        put(",\"content\":");
        token(id);
        put(",\"single_word\":false,\"lstrip\":false,\"rstrip\":");
        put(Boolean.toString(swallowsSpaces(id)));
        put(",\"normalized\":false,\"special\":");
        put(Boolean.toString(type.isSpecial()));
        put("}");
        separator = ",";
      }
    }
    put("],\"post_processor\":null,\"decoder\":null");
  }

  /** Phi-3's marks take the spaces after them along, which GGUF has no field for. */
  private boolean swallowsSpaces(int id) {
    String name = vocabulary.modelName();
    return (name.contains("phi-3") || name.contains("phi3"))
        && !Set.of("<unk>", "<s>", "<|endoftext|>").contains(texts.get(id));
  }

  private void writeVocabulary() {
    put(",\"vocab\":{");
    boolean first = true;
    for (int id = 0; id < vocabulary.size(); id++) {
      if (vocabulary.isEncodable(id)) {
        if (!first) {
          put(',');
        }
        first = false;
        token(id);
        put(':');
        number(id);
      }
    }
    put("}");
  }

  /**
   * Merges as the tokens that they join: a text is split at its first space, but for one that it begins with. Those of
   * what is no token, or twice, are left out: the library refuses them.
   */
  private TokenPairs mergesOfTokens(GgufStrings merges) {
    TextIndex index = new TextIndex(merges);
    TokenPairs kept = new TokenPairs(merges.size());
    byte[] bytes = merges.bytes();
    byte[] joined = new byte[64];
    for (int i = 0; i < merges.size(); i++) {
      int start = merges.start(i);
      int end = merges.end(i);
      int space = start + 1;
      while (space < end && bytes[space] != ' ') {
        space++;
      }
      if (space >= end || !index.isFirst(i)) {
        continue;
      }
      int left = vocabulary.id(bytes, start, space);
      int right = left < 0 ? -1 : vocabulary.id(bytes, space + 1, end);
      if (right >= 0) {
        int leftBytes = space - start;
        int joinedBytes = end - start - 1;
        joined = joinedBytes > joined.length ? new byte[2 * joinedBytes] : joined;
        System.arraycopy(bytes, start, joined, 0, leftBytes);
        System.arraycopy(bytes, space + 1, joined, leftBytes, joinedBytes - leftBytes);
        if (vocabulary.id(joined, 0, joinedBytes) >= 0) {
          kept.add(TokenPairs.pair(left, right));
        }
      }
    }
    return kept;
  }

  /**
   * Writes merges and closes the document: as lines "left right", which the library reads in half the time that pairs
   * take, or all as pairs if one is there that it would not read as such a line.
   */
  private void writeMerges(TokenPairs merges) {
    boolean asLines = true;
    for (int i = 0; asLines && i < merges.size(); i++) {
      asLines = !hasSpace(merges.left(i)) && !hasSpace(merges.right(i)) && !isFileHead(merges.left(i));
    }
    put(",\"merges\":[");
    for (int i = 0; i < merges.size(); i++) {
      put(i == 0 ? "" : ",");
      if (asLines) {
        put('"');
        escaped(merges.left(i));
        put(' ');
        escaped(merges.right(i));
        put('"');
      } else {
        put('[');
        token(merges.left(i));
        put(',');
        token(merges.right(i));
        put(']');
      }
    }
    put("]}}");
  }

  /** The library splits a line at each space. */
  private boolean hasSpace(int id) {
    byte[] bytes = texts.bytes();
    for (int i = texts.start(id); i < texts.end(id); i++) {
      if (bytes[i] == ' ') {
        return true;
      }
    }
    return false;
  }

  /** The library takes a line with this beginning for the head of a file. */
  private boolean isFileHead(int id) {
    int start = texts.start(id);
    return texts.end(id) - start >= FILE_HEAD.length
        && Arrays.equals(texts.bytes(), start, start + FILE_HEAD.length, FILE_HEAD, 0, FILE_HEAD.length);
  }

  private void token(int id) {
    put('"');
    escaped(id);
    put('"');
  }

  private void escaped(int id) {
    escaped(texts.bytes(), texts.start(id), texts.end(id));
  }

  private void string(String value) {
    byte[] utf8 = value.getBytes(StandardCharsets.UTF_8);
    put('"');
    escaped(utf8, 0, utf8.length);
    put('"');
  }

  private void escaped(byte[] utf8, int from, int to) {
    makeRoom(ESCAPE_BYTES * (to - from));
    for (int i = from; i < to; i++) {
      int value = utf8[i];
      if (value >= ' ' && value != '"' && value != '\\') {
        json[length++] = (byte) value;
      } else if (value >= ' ') {
        json[length++] = '\\';
        json[length++] = (byte) value;
      } else if (value >= 0) {
        unit(value);
      } else {
        int more = value < (byte) 0xe0 ? 1 : value < (byte) 0xf0 ? 2 : 3;
        int codePoint = value & (0x3f >> more);
        for (; more > 0; more--) {
          codePoint = (codePoint << 6) | (utf8[++i] & 0x3f);
        }
        if (Character.isBmpCodePoint(codePoint)) {
          unit(codePoint);
        } else {
          unit(Character.highSurrogate(codePoint));
          unit(Character.lowSurrogate(codePoint));
        }
      }
    }
  }

  /** A character of 16 bits, as an escape, for which there is room. */
  private void unit(int value) {
    json[length++] = '\\';
    json[length++] = 'u';
    for (int shift = 12; shift >= 0; shift -= 4) {
      json[length++] = HEX[(value >> shift) & 0xf];
    }
  }

  private void number(int value) {
    put(Integer.toString(value));
  }

  private void put(String ascii) {
    makeRoom(ascii.length());
    for (int i = 0; i < ascii.length(); i++) {
      json[length++] = (byte) ascii.charAt(i);
    }
  }

  private void put(char ascii) {
    makeRoom(1);
    json[length++] = (byte) ascii;
  }

  private void makeRoom(int bytes) {
    if (bytes > json.length - length) {
      json = Arrays.copyOf(json, Math.toIntExact(Math.max(Math.min(2L * length, MAX_BYTES), (long) length + bytes)));
    }
  }
}
