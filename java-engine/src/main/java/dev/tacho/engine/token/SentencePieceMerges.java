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
   * @param left the text before the joint
   * @param right the text after it
   * @param score the joined piece's
   * @param leftLength code points of {@code left}
   * @param rightLength code points of {@code right}
   * @param order orders the ways to put one piece together by the ids of the parts
   */
  private record Merge(
      String left, String right, float score, int leftLength, int rightLength, long order) {}

  private SentencePieceMerges() {}

  /** The pairs in the order in which they merge, each as left and right part. */
  static List<String[]> of(Vocabulary vocabulary) {
    float[] scores = vocabulary.scores();
    List<Merge> merges = new ArrayList<>();
    List<Merge> local = new ArrayList<>();
    for (int id = 0; id < vocabulary.size(); id++) {
      if (!isPiece(vocabulary, id)) {
        continue;
      }
      local.clear();
      addSplits(vocabulary, vocabulary.text(id), scores[id], local);
      local.sort(Comparator.comparingLong(Merge::order));
      merges.addAll(local);
    }
    merges.sort(
        Comparator.<Merge>comparingDouble(merge -> -merge.score)
            .thenComparingInt(merge -> -merge.leftLength)
            .thenComparingInt(merge -> -merge.rightLength));
    return merges.stream().map(merge -> new String[] {merge.left, merge.right}).toList();
  }

  private static boolean isPiece(Vocabulary vocabulary, int id) {
    TokenType type = vocabulary.type(id);
    return vocabulary.isEncodable(id) && type != TokenType.CONTROL && type != TokenType.UNKNOWN;
  }

  private static void addSplits(Vocabulary vocabulary, String text, float score, List<Merge> into) {
    int length = text.codePointCount(0, text.length());
    int joint = 0;
    for (int leftLength = 1; leftLength < length; leftLength++) {
      joint = text.offsetByCodePoints(joint, 1);
      String left = text.substring(0, joint);
      int leftId = vocabulary.id(left).orElse(-1);
      if (leftId < 0 || !isPiece(vocabulary, leftId)) {
        continue;
      }
      String right = text.substring(joint);
      int rightId = vocabulary.id(right).orElse(-1);
      if (rightId >= 0 && isPiece(vocabulary, rightId)) {
        long order = (long) leftId << Integer.SIZE | rightId;
        into.add(new Merge(left, right, score, leftLength, length - leftLength, order));
      }
    }
  }
}
