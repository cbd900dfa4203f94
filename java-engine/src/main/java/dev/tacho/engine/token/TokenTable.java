package dev.tacho.engine.token;

import dev.tacho.engine.format.GgufStrings;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The bytes that each token stands for, so that text is put together without the native library. Immutable, for any
 * thread.
 */
final class TokenTable {
  private static final byte SPECIAL = 1;
  private static final byte BYTE = 2;
  private static final byte[] SPACE_MARK = "▁".getBytes(StandardCharsets.UTF_8);

  private final boolean addsSpacePrefix;
  private final byte[] bytes;
  private final int[] ends;
  private final byte[] flags;

  private TokenTable(boolean addsSpacePrefix, byte[] bytes, int[] ends, byte[] flags) {
    this.addsSpacePrefix = addsSpacePrefix;
    this.bytes = bytes;
    this.ends = ends;
    this.flags = flags;
  }

  /** The table of a vocabulary. */
  static TokenTable of(Vocabulary vocabulary) {
    boolean byteLevel = vocabulary.kind() == Vocabulary.Kind.BYTE_LEVEL;
    GgufStrings texts = vocabulary.texts();
    byte[] utf8 = texts.bytes();
    // No token stands for more bytes than its text has.
    byte[] bytes = new byte[utf8.length];
    int[] ends = new int[vocabulary.size()];
    byte[] flags = new byte[vocabulary.size()];
    int at = 0;
    for (int id = 0; id < ends.length; id++) {
      int from = texts.start(id);
      int to = texts.end(id);
      if (byteLevel) {
        at = ByteAlphabet.decode(utf8, from, to, bytes, at);
      } else {
        int value = fallbackByte(utf8, from, to);
        if (value >= 0) {
          bytes[at++] = (byte) value;
          flags[id] |= BYTE;
        } else {
          at = copyWithSpaces(utf8, from, to, bytes, at);
        }
      }
      ends[id] = at;
      if (vocabulary.type(id).isSpecial()) {
        flags[id] |= SPECIAL;
      }
    }
    return new TokenTable(!byteLevel && vocabulary.addsSpacePrefix(), Arrays.copyOf(bytes, at), ends, flags);
  }

  private static int copyWithSpaces(byte[] utf8, int from, int to, byte[] into, int at) {
    int end = at;
    for (int i = from; i < to; i++) {
      boolean mark =
          to - i >= SPACE_MARK.length
              && Arrays.equals(utf8, i, i + SPACE_MARK.length, SPACE_MARK, 0, SPACE_MARK.length);
      into[end++] = mark ? (byte) ' ' : utf8[i];
      i += mark ? SPACE_MARK.length - 1 : 0;
    }
    return end;
  }

  /** The byte that a text like {@code <0x0A>} stands for, -1 for any other text. */
  private static int fallbackByte(byte[] utf8, int from, int to) {
    if (to - from != 6 || utf8[from] != '<' || utf8[from + 1] != '0' || utf8[from + 2] != 'x' || utf8[to - 1] != '>') {
      return -1;
    }
    int high = Character.digit(utf8[from + 3], 16);
    int low = Character.digit(utf8[from + 4], 16);
    return high < 0 || low < 0 ? -1 : (high << 4) | low;
  }

  int size() {
    return ends.length;
  }

  /** Whether a space was put before the text when it was encoded. */
  boolean addsSpacePrefix() {
    return addsSpacePrefix;
  }

  /** Whether the token is a mark that output leaves out. */
  boolean isSpecial(int id) {
    return id >= 0 && id < flags.length && (flags[id] & SPECIAL) != 0;
  }

  /** Whether the token stands for one byte of a character without a token. */
  boolean isByte(int id) {
    return (flags[id] & BYTE) != 0;
  }

  /** Index of a token's first byte for {@link #byteAt}. */
  int start(int id) {
    return id == 0 ? 0 : ends[id - 1];
  }

  /** Index after a token's last byte. */
  int end(int id) {
    return ends[id];
  }

  byte byteAt(int index) {
    return bytes[index];
  }

  /** A copy of the token's bytes. */
  byte[] bytes(int id) {
    return Arrays.copyOfRange(bytes, start(id), end(id));
  }
}
