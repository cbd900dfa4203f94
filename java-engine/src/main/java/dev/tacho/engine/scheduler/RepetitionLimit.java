package dev.tacho.engine.scheduler;

/**
 * When an output counts as a loop: its last tokens are {@code minCount} copies of one pattern.
 *
 * @param minPatternSize shortest pattern looked for, in tokens; 0 is the same as 1
 * @param maxPatternSize longest pattern looked for, in tokens
 * @param minCount copies, at least 2
 */
public record RepetitionLimit(int minPatternSize, int maxPatternSize, int minCount) {
  /** Checks the values. */
  public RepetitionLimit {
    if (minPatternSize < 0 || maxPatternSize < minPatternSize || minCount < 2) {
      throw new IllegalArgumentException(
          "repetition limit: patterns of "
              + minPatternSize
              + " to "
              + maxPatternSize
              + " tokens, "
              + minCount
              + " copies; at least 2 copies and an ascending range are needed");
    }
  }

  /** True if the last tokens of the output are such a loop. */
  boolean reachedBy(Sequence sequence) {
    int outputs = sequence.outputLength();
    for (int size = Math.max(1, minPatternSize); size <= maxPatternSize; size++) {
      if ((long) size * minCount > outputs) {
        return false;
      }
      if (repeats(sequence, size)) {
        return true;
      }
    }
    return false;
  }

  /** True if each of the last {@code size * minCount} tokens but the first {@code size} equals the one before it. */
  private boolean repeats(Sequence sequence, int size) {
    int end = sequence.length();
    for (int i = end - size * (minCount - 1); i < end; i++) {
      if (sequence.token(i) != sequence.token(i - size)) {
        return false;
      }
    }
    return true;
  }
}
