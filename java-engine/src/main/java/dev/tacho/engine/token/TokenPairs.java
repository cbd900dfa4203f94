package dev.tacho.engine.token;

import java.util.Arrays;

/** Pairs of tokens, in the order in which they were added. Of one thread. */
final class TokenPairs {
  private long[] pairs;
  private int size;

  /**
   * @param capacity how many are expected
   */
  TokenPairs(int capacity) {
    pairs = new long[Math.max(1, capacity)];
  }

  /** One pair as a number. Among pairs of equal left token the right one orders, among others the left one. */
  static long pair(int left, int right) {
    return ((long) left << Integer.SIZE) | right;
  }

  void add(long pair) {
    if (size == pairs.length) {
      pairs = Arrays.copyOf(pairs, 2 * size);
    }
    pairs[size++] = pair;
  }

  int size() {
    return size;
  }

  int left(int index) {
    return (int) (pairs[index] >>> Integer.SIZE);
  }

  int right(int index) {
    return (int) pairs[index];
  }
}
