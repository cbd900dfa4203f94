package dev.tacho.engine.token;

/**
 * Turns the tokens of one sequence into text as they come: a character is never split, and what has been given out is
 * never taken back. The parts joined are the text of the whole, special tokens left out. Made by
 * {@link Tokenizer#detokenizer}; good also after the tokenizer is closed.
 *
 * <p>Constant work and no native call a token; a token that completes no text allocates nothing. Of one thread at a
 * time.
 */
public final class IncrementalDetokenizer {
  /** A character has at most this many bytes before its last one. */
  private static final int MAX_UNFINISHED_BYTES = 3;

  private final TokenTable table;
  private final TextAssembler assembler;

  IncrementalDetokenizer(TokenTable table, int[] promptIds) {
    this.table = table;
    this.assembler = new TextAssembler(table, !hasText(table, promptIds));
    for (int i = tailStart(table, promptIds); i < promptIds.length; i++) {
      append(promptIds[i]);
    }
    assembler.discard();
  }

  /**
   * Takes the next token.
   *
   * @param id the token; one outside the vocabulary has no text
   * @return the text that is complete now, possibly empty: an unfinished character, or U+FFFD that further bytes could
   *     still change, waits for the next token
   */
  public String append(int id) {
    if (table.isSpecial(id)) {
      return "";
    }
    assembler.append(id);
    return assembler.take();
  }

  /** The text that was still waiting, at the end of the sequence; bytes that are no character become U+FFFD. */
  public String flush() {
    return assembler.finish();
  }

  private static boolean hasText(TokenTable table, int[] ids) {
    for (int id : ids) {
      if (textBytes(table, id) > 0) {
        return true;
      }
    }
    return false;
  }

  /** Where to begin so that the state after the last id is the same as from the first, without all the text before. */
  private static int tailStart(TokenTable table, int[] ids) {
    int bytes = 0;
    for (int i = ids.length - 1; i >= 0; i--) {
      int length = textBytes(table, ids[i]);
      bytes += length;
      if (length > 0 && bytes > MAX_UNFINISHED_BYTES && !table.isByte(ids[i])) {
        return i;
      }
    }
    return 0;
  }

  private static int textBytes(TokenTable table, int id) {
    return id < 0 || id >= table.size() || table.isSpecial(id)
        ? 0
        : table.end(id) - table.start(id);
  }
}
