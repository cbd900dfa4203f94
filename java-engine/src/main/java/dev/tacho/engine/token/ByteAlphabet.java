package dev.tacho.engine.token;

import java.nio.charset.StandardCharsets;
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

  /** The bytes that a token's text writes; its UTF-8 if a character is not of the alphabet, as in added tokens. */
  static byte[] bytes(String text) {
    byte[] bytes = new byte[text.length()];
    for (int i = 0; i < bytes.length; i++) {
      char character = text.charAt(i);
      if (character >= BYTE_OF.length || BYTE_OF[character] < 0) {
        return text.getBytes(StandardCharsets.UTF_8);
      }
      bytes[i] = (byte) BYTE_OF[character];
    }
    return bytes;
  }
}
