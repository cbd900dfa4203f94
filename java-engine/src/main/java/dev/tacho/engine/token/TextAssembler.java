package dev.tacho.engine.token;

/**
 * Puts text together from the bytes of tokens: the part that is complete can be taken at any time, an unfinished
 * character waits. Bytes that are not UTF-8 become U+FFFD, in the way of the vocabulary's own decoder:
 *
 * <ul>
 *   <li>byte-level: one for each maximal part of a sequence that could not be continued;
 *   <li>byte fallback: byte tokens in a row are UTF-8 as a whole, or one U+FFFD each. What was taken before the row
 *       went wrong stays as it was.
 * </ul>
 *
 * <p>Constant work a byte. Of one thread.
 */
final class TextAssembler {
  private static final char REPLACEMENT = '\ufffd';
  private static final int MIN_CONTINUATION = 0x80;
  private static final int MAX_CONTINUATION = 0xbf;

  private final TokenTable table;
  private final StringBuilder text = new StringBuilder();
  private boolean dropsSpace;

  private int codePoint;
  private int bytesNeeded;
  private int characterBytes;
  private int lowest = MIN_CONTINUATION;
  private int highest = MAX_CONTINUATION;

  /** Where the row of byte tokens begins in the text, its bytes not yet taken, and whether it is not UTF-8. */
  private int rowStart;

  private int rowBytes;
  private boolean rowBroken;

  /**
   * @param table the vocabulary's bytes
   * @param atStart whether nothing precedes, so that the space that was put before the text is dropped again
   */
  TextAssembler(TokenTable table, boolean atStart) {
    this.table = table;
    this.dropsSpace = atStart && table.addsSpacePrefix();
  }

  /** Appends a token; an id outside the vocabulary has no text. */
  void append(int id) {
    if (id < 0 || id >= table.size()) {
      return;
    }
    if (table.isByte(id)) {
      appendRowByte(table.byteAt(table.start(id)));
      return;
    }
    endRow();
    int end = table.end(id);
    for (int i = table.start(id); i < end; i++) {
      acceptOrReplace(table.byteAt(i) & 0xff);
    }
  }

  /** Takes the text so far, if it is complete and its end cannot change any more; else nothing. */
  String take() {
    if (bytesNeeded > 0 || text.isEmpty() || text.charAt(text.length() - 1) == REPLACEMENT) {
      return "";
    }
    return takeAll();
  }

  /** Takes what is left; an unfinished character becomes U+FFFD. */
  String finish() {
    endRow();
    if (bytesNeeded > 0) {
      put(REPLACEMENT);
      resetCharacter();
    }
    return takeAll();
  }

  /** Forgets the text that could be taken, but not an unfinished character. */
  void discard() {
    takeAll();
  }

  private String takeAll() {
    String taken = text.toString();
    text.setLength(0);
    rowStart = 0;
    rowBytes = rowBytes > 0 ? characterBytes : 0;
    return taken;
  }

  private void appendRowByte(byte value) {
    if (rowBroken) {
      put(REPLACEMENT);
      return;
    }
    if (rowBytes == 0) {
      rowStart = text.length();
    }
    rowBytes++;
    if (!accept(value & 0xff)) {
      breakRow();
    }
  }

  private void breakRow() {
    rowBroken = true;
    text.setLength(rowStart);
    for (; rowBytes > 0; rowBytes--) {
      put(REPLACEMENT);
    }
    resetCharacter();
  }

  private void endRow() {
    if (rowBytes > 0 && bytesNeeded > 0) {
      breakRow();
    }
    rowBytes = 0;
    rowBroken = false;
  }

  private void acceptOrReplace(int value) {
    boolean inCharacter = bytesNeeded > 0;
    if (accept(value)) {
      return;
    }
    put(REPLACEMENT);
    resetCharacter();
    if (inCharacter && !accept(value)) {
      put(REPLACEMENT);
    }
  }

  /** Takes a byte of UTF-8 in; false if it cannot stand there. After false the character must be reset. */
  private boolean accept(int value) {
    if (bytesNeeded == 0) {
      return begin(value);
    }
    if (value < lowest || value > highest) {
      return false;
    }
    lowest = MIN_CONTINUATION;
    highest = MAX_CONTINUATION;
    codePoint = codePoint << 6 | (value & 0x3f);
    characterBytes++;
    bytesNeeded--;
    if (bytesNeeded == 0) {
      characterBytes = 0;
      put(codePoint);
    }
    return true;
  }

  /** The table of well-formed sequences of the Unicode standard: the second byte has narrower limits after some. */
  private boolean begin(int value) {
    if (value < 0x80) {
      put(value);
      return true;
    }
    if (value < 0xc2 || value > 0xf4) {
      return false;
    }
    characterBytes = 1;
    if (value < 0xe0) {
      bytesNeeded = 1;
      codePoint = value & 0x1f;
    } else if (value < 0xf0) {
      bytesNeeded = 2;
      codePoint = value & 0x0f;
      lowest = value == 0xe0 ? 0xa0 : MIN_CONTINUATION;
      highest = value == 0xed ? 0x9f : MAX_CONTINUATION;
    } else {
      bytesNeeded = 3;
      codePoint = value & 0x07;
      lowest = value == 0xf0 ? 0x90 : MIN_CONTINUATION;
      highest = value == 0xf4 ? 0x8f : MAX_CONTINUATION;
    }
    return true;
  }

  private void resetCharacter() {
    bytesNeeded = 0;
    characterBytes = 0;
    lowest = MIN_CONTINUATION;
    highest = MAX_CONTINUATION;
  }

  private void put(int character) {
    if (dropsSpace) {
      dropsSpace = false;
      if (character == ' ') {
        return;
      }
    }
    text.appendCodePoint(character);
  }
}
