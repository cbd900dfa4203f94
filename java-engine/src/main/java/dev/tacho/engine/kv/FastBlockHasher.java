package dev.tacho.engine.kv;

import java.security.SecureRandom;

/**
 * A 128-bit hash: two 64-bit states that take in 16 bytes a round beside each other and change places, every round a
 * bijection of the state for given input, and a final mix. The parent of a first block is random, so hashes differ from
 * process to process. Quick, but not made to withstand an opponent.
 */
final class FastBlockHasher extends BlockHasher {
  // Odd constants whose bits look random: fractions of the golden ratio, of the square roots of 2, 3 and 5.
  private static final long A = 0x9E3779B97F4A7C15L;
  private static final long B = 0x6A09E667F3BCC909L;
  private static final long C = 0xBB67AE8584CAA73BL;
  private static final long D = 0x3C6EF372FE94F82BL;

  private final long rootLow;
  private final long rootHigh;

  FastBlockHasher(int blockTokens) {
    super(blockTokens);
    SecureRandom random = new SecureRandom();
    rootLow = random.nextLong();
    rootHigh = random.nextLong();
  }

  @Override
  void hash(int[] tokens, int index, byte[] extraKeys, long[] words) {
    int at = index * WORDS;
    long low = index == 0 ? rootLow : words[at - WORDS];
    long high = index == 0 ? rootHigh : words[at - WORDS + 1];
    int end = (index + 1) * blockTokens();
    int t = index * blockTokens();
    for (; t + 4 <= end; t += 4) {
      long first = round(low, pair(tokens[t], tokens[t + 1]), A, B);
      low = round(high, pair(tokens[t + 2], tokens[t + 3]), C, D);
      high = first + low;
    }
    for (; t < end; t++) {
      long first = round(low, tokens[t], A, B);
      low = round(high, t, C, D);
      high = first + low;
    }
    for (byte key : extraKeys) {
      long first = round(low, key, B, A);
      low = round(high, extraKeys.length, D, C);
      high = first + low;
    }
    low = mix(low) + high;
    high = mix(high) + low;
    words[at] = mix(low);
    words[at + 1] = mix(high + A);
    words[at + 2] = 0;
    words[at + 3] = 0;
  }

  private static long pair(int first, int second) {
    return (first & 0xFFFFFFFFL) | ((long) second << 32);
  }

  private static long round(long state, long input, long before, long behind) {
    long mixed = Long.rotateLeft(input * before, 31) * behind;
    return Long.rotateLeft(state ^ mixed, 27) * A + D;
  }

  private static long mix(long state) {
    long z = (state ^ (state >>> 32)) * C;
    z = (z ^ (z >>> 29)) * B;
    return z ^ (z >>> 32);
  }
}
