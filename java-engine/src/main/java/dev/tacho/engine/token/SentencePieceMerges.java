package dev.tacho.engine.token;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Derives the merges of a SentencePiece vocabulary, which has scores instead: every way to put a piece together from
 * two others, the piece with the higher score first. Within a score the longer left part goes first, then the longer
 * right one, then the order of the vocabulary; the converters of Hugging Face order so, and ids are to equal theirs.
 */
final class SentencePieceMerges {
  /**
   * Two pieces that join into a third.
   *
   * @param pair the pieces, as {@link TokenPairs#pair}; orders the ways to put one piece together
   * @param score the joined piece's
   * @param leftLength code points of the left one
   * @param rightLength code points of the right one
   */
  private record Merge(long pair, float score, int leftLength, int rightLength) {}

  private SentencePieceMerges() {}

  /** The pairs in the order in which they merge. */
  static TokenPairs of(Vocabulary vocabulary) {
    float[] scores = vocabulary.scores();
    List<Merge> merges = new ArrayList<>();
    List<Merge> local = new ArrayList<>();
    for (int id = 0; id < vocabulary.size(); id++) {
      if (!isPiece(vocabulary, id)) {
        continue;
      }
      local.clear();
      addSplits(vocabulary, id, scores[id], local);
      local.sort(Comparator.comparingLong(Merge::pair));
      merges.addAll(local);
    }
    merges.sort(
        Comparator.<Merge>comparingDouble(merge -> -merge.score)
            .thenComparingInt(merge -> -merge.leftLength)
            .thenComparingInt(merge -> -merge.rightLength));
    TokenPairs pairs = new TokenPairs(merges.size());
    merges.forEach(merge -> pairs.add(merge.pair));
    return pairs;
  }

  private static boolean isPiece(Vocabulary vocabulary, int id) {
    TokenType type = vocabulary.type(id);
    return vocabulary.isEncodable(id) && type != TokenType.CONTROL && type != TokenType.UNKNOWN;
  }

  private static void addSplits(Vocabulary vocabulary, int id, float score, List<Merge> into) {
    byte[] bytes = vocabulary.texts().bytes();
    int start = vocabulary.texts().start(id);
    int end = vocabulary.texts().end(id);
    int length = 0;
    for (int i = start; i < end; i++) {
      length += beginsCharacter(bytes[i]) ? 1 : 0;
    }
    int leftLength = 1;
    for (int joint = start + 1; joint < end; joint++) {
      if (!beginsCharacter(bytes[joint])) {
        continue;
      }
      int left = vocabulary.id(bytes, start, joint);
      if (left >= 0 && isPiece(vocabulary, left)) {
        int right = vocabulary.id(bytes, joint, end);
        if (right >= 0 && isPiece(vocabulary, right)) {
          into.add(new Merge(TokenPairs.pair(left, right), score, leftLength, length - leftLength));
        }
      }
      leftLength++;
    }
  }

  private static boolean beginsCharacter(byte utf8) {
    return (utf8 & 0xc0) != 0x80;
  }
}
