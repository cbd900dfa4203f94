package dev.tacho.engine.sampling;

/**
 * Guesses the next tokens of a sequence: looks for the longest end of it, within limits, that also stands further
 * ahead, and takes what follows there. One pass over the tokens; used by one thread at a time; allocates nothing.
 *
 * <p>The pass runs from the end of the sequence to its beginning. Read backwards the end is a prefix, so the longest
 * match at each place comes from the prefix function of Knuth, Morris and Pratt, cut off at the longest end that is
 * looked for.
 */
public final class NgramProposer {
  private final int minLength;
  private final int maxLength;
  private final int maxModelLen;
  // Of the last i + 1 tokens: the longest proper end of them that they also begin with, read backwards.
  private final int[] borders;

  /**
   * @param minLength tokens of the end at least, from 1
   * @param maxLength tokens of the end at most
   * @param maxModelLen tokens of a sequence at most, drafts included
   */
  public NgramProposer(int minLength, int maxLength, int maxModelLen) {
    if (minLength < 1 || maxLength < minLength) {
      throw new IllegalArgumentException("n-grams of " + minLength + " to " + maxLength + " tokens");
    }
    this.minLength = minLength;
    this.maxLength = maxLength;
    this.maxModelLen = maxModelLen;
    borders = new int[Math.min(maxLength, maxModelLen)];
  }

  /**
   * Guesses.
   *
   * @param tokens of the sequence, at least {@code length} elements
   * @param length tokens that count
   * @param drafts where the guessed tokens go; its length is how many there may be
   * @return how many there are: 0 if no end of the sequence stands in it twice
   */
  public int propose(int[] tokens, int length, int[] drafts) {
    int wanted = Math.min(drafts.length, maxModelLen - length);
    if (wanted <= 0) {
      return 0;
    }
    int last = length - 1;
    int longest = 0;
    int begin = 0;
    int matched = 0;
    for (int i = 1; i < length; i++) {
      int token = tokens[last - i];
      while (matched > 0 && tokens[last - matched] != token) {
        matched = borders[matched - 1];
      }
      if (tokens[last - matched] == token) {
        matched++;
        if (matched >= longest) {
          // Of equally long ones the earliest in the text.
          longest = matched;
          begin = last - i;
        }
      }
      if (i < borders.length) {
        borders[i] = matched;
      }
      if (matched == maxLength) {
        matched = borders[maxLength - 1];
      }
    }
    if (longest < minLength) {
      return 0;
    }
    int from = begin + longest;
    int count = Math.min(wanted, length - from);
    System.arraycopy(tokens, from, drafts, 0, count);
    return count;
  }
}
