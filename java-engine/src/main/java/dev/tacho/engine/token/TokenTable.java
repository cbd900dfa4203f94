package dev.tacho.engine.token;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The bytes that each token stands for, so that text is put together without the native library. Immutable, for any
 * thread.
 */
final class TokenTable {
  private static final byte SPECIAL = 1;
  private static final byte BYTE = 2;
  private static final char SPACE_MARK = '▁';

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
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    int[] ends = new int[vocabulary.size()];
    byte[] flags = new byte[vocabulary.size()];
    for (int id = 0; id < ends.length; id++) {
      String text = vocabulary.text(id);
      if (byteLevel) {
        bytes.writeBytes(ByteAlphabet.bytes(text));
      } else {
        int value = fallbackByte(text);
        if (value >= 0) {
          bytes.write(value);
          flags[id] |= BYTE;
        } else {
          bytes.writeBytes(text.replace(SPACE_MARK, ' ').getBytes(StandardCharsets.UTF_8));
        }
      }
      ends[id] = bytes.size();
      if (vocabulary.type(id).isSpecial()) {
        flags[id] |= SPECIAL;
      }
    }
    return new TokenTable(
        !byteLevel && vocabulary.addsSpacePrefix(), bytes.toByteArray(), ends, flags);
  }

  /** The byte that a text like {@code <0x0A>} stands for, -1 for any other text. */
  private static int fallbackByte(String text) {
    if (text.length() != 6 || !text.startsWith("<0x") || text.charAt(5) != '>') {
      return -1;
    }
    int high = Character.digit(text.charAt(3), 16);
    int low = Character.digit(text.charAt(4), 16);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
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
