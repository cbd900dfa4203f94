package dev.tacho.engine.token;

import java.util.Arrays;

/**
 * The characters by which byte-level vocabularies write bytes: printable ones of Latin-1 as themselves, the other 68
 * bytes in order as U+0100 and up.
 */
final class ByteAlphabet {
  private static final int FIRST_SUBSTITUTE = 0x100;
  private static final short[] BYTE_OF = new short[0x144];

  static {
    Arrays.fill(BYTE_OF, (short) -1);
    int substitute = FIRST_SUBSTITUTE;
    for (int value = 0; value < 0x100; value++) {
      boolean printable =
          (value >= '!' && value <= '~')
              || (value >= 0xa1 && value <= 0xac)
              || (value >= 0xae && value <= 0xff);
      BYTE_OF[printable ? value : substitute++] = (short) value;
    }
  }

  private ByteAlphabet() {}

  /**
   * Copies the bytes that a token's text writes; its UTF-8 if a character is not of the alphabet, as in added tokens.
   *
   * @param utf8 the text, from {@code from} to {@code to}
   * @param into gets them, no more than the text has
   * @param at index of the first of them
   * @return index after the last
   */
  static int decode(byte[] utf8, int from, int to, byte[] into, int at) {
    int end = at;
    for (int i = from; i < to; i++) {
      int character = utf8[i];
      if (character < 0 && i + 1 < to) {
        // Of two bytes, or not of the alphabet.
        character = (character & 0xe0) == 0xc0 ? ((character & 0x1f) << 6) | (utf8[++i] & 0x3f) : -1;
      }
      if (character < 0 || character >= BYTE_OF.length || BYTE_OF[character] < 0) {
        System.arraycopy(utf8, from, into, at, to - from);
        return at + to - from;
      }
      into[end++] = (byte) BYTE_OF[character];
    }
    return end;
  }
}
