package dev.tacho.engine;

import java.util.ArrayList;
import java.util.List;

/** Turns texts that an output must not contain into the token ids that the sampler keeps out. */
final class BadWords {
  private BadWords() {}

  /**
   * The ids of each text as it stands inside a word, and those with a space before it where that is a token sequence of
   * the same length with another beginning: many vocabularies have a word twice, with its space and without.
   *
   * @throws InvalidRequestException if a text has no tokens
   */
  static int[][] tokenIds(List<String> texts, TextCodec codec) {
    List<int[]> words = new ArrayList<>();
    for (String text : texts) {
      int[] inside = codec.encodePiece(text.stripLeading());
      if (inside.length == 0) {
        throw new InvalidRequestException("bad_words", "'" + text + "' has no token");
      }
      words.add(inside);
      int[] begin = codec.encodePiece(" " + text.stripLeading());
      if (begin.length == inside.length && begin[0] != inside[0]) {
        words.add(begin);
      }
    }
    return words.toArray(new int[0][]);
  }
}
