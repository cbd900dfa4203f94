package dev.tacho.engine.sampling;

import java.util.Arrays;

/**
 * Which tokens a sequence has: those of its prompt, and those of its output in order and by number. An open hash table
 * from id to count, so that a penalty costs as much as there are different tokens, not as much as the vocabulary.
 * Grows by doubling; otherwise allocates nothing. One thread at a time.
 */
final class TokenHistory {
  private static final int MIN_CAPACITY = 64;
  private static final int FREE = -1;

  private int[] ids = new int[MIN_CAPACITY];
  private int[] counts = new int[MIN_CAPACITY];
  private boolean[] inPrompt = new boolean[MIN_CAPACITY];
  private int used;
  private int[] output = new int[MIN_CAPACITY];
  private int length;

  /**
   * @param promptIds tokens of the prompt
   */
  TokenHistory(int[] promptIds) {
    Arrays.fill(ids, FREE);
    for (int id : promptIds) {
      int at = place(id);
      inPrompt[at] = true;
    }
  }

  /** Adds an output token. */
  void append(int id) {
    if (length == output.length) {
      output = Arrays.copyOf(output, length * 2);
    }
    output[length++] = id;
    int at = place(id);
    counts[at]++;
  }

  /** Takes back the output tokens behind the first {@code kept}. */
  void truncate(int kept) {
    while (length > kept) {
      int at = find(output[--length]);
      counts[at]--;
    }
  }

  /** Output tokens. */
  int length() {
    return length;
  }

  /** True if the output ends with the first {@code count} of these ids. */
  boolean endsWith(int[] word, int count) {
    return count <= length && Arrays.equals(output, length - count, length, word, 0, count);
  }

  /** Places of the table: some hold a token. */
  int places() {
    return ids.length;
  }

  /** The token in a place, or a negative number. */
  int id(int place) {
    return ids[place];
  }

  /** How often the output has the token in a place. */
  int count(int place) {
    return counts[place];
  }

  /** True if prompt or output has the token in a place. */
  boolean has(int place) {
    return inPrompt[place] || counts[place] > 0;
  }

  /** The token's place, made if there is none: the arrays may be others afterwards. */
  private int place(int id) {
    int at = find(id);
    if (ids[at] == FREE) {
      if (2 * (used + 1) > ids.length) {
        grow();
        at = find(id);
      }
      ids[at] = id;
      used++;
    }
    return at;
  }

  private int find(int id) {
    int mask = ids.length - 1;
    int at = (id * 0x9E3779B1) >>> 7 & mask;
    while (ids[at] != id && ids[at] != FREE) {
      at = (at + 1) & mask;
    }
    return at;
  }

  private void grow() {
    int[] oldIds = ids;
    int[] oldCounts = counts;
    boolean[] oldInPrompt = inPrompt;
    ids = new int[oldIds.length * 2];
    counts = new int[ids.length];
    inPrompt = new boolean[ids.length];
    Arrays.fill(ids, FREE);
    for (int i = 0; i < oldIds.length; i++) {
      if (oldIds[i] != FREE) {
        int at = find(oldIds[i]);
        ids[at] = oldIds[i];
        counts[at] = oldCounts[i];
        inPrompt[at] = oldInPrompt[i];
      }
    }
  }
}
