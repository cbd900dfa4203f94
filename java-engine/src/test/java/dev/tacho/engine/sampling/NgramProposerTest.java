package dev.tacho.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Drafts against a search that tries every end at every place. */
class NgramProposerTest {
  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5})
  void equalsTheSearchThatTriesEverything(long seed) {
    Random random = new Random(seed);
    for (int round = 0; round < 2000; round++) {
      int[] tokens = random.ints(random.nextInt(1, 40), 0, random.nextInt(1, 4)).toArray();
      int min = random.nextInt(1, 5);
      int max = min + random.nextInt(5);
      int limit = random.nextInt(1, 60);
      int[] drafts = new int[random.nextInt(1, 7)];
      int count = new NgramProposer(min, max, limit).propose(tokens, tokens.length, drafts);
      assertThat(Arrays.copyOf(drafts, count))
          .as("%s, ends of %s to %s, limit %s", Arrays.toString(tokens), min, max, limit)
          .isEqualTo(search(tokens, min, max, limit, drafts.length));
    }
  }

  private static int[] search(int[] tokens, int min, int max, int limit, int most) {
    int length = tokens.length;
    for (int n = Math.min(max, length - 1); n >= min; n--) {
      for (int begin = 0; begin + n < length; begin++) {
        if (Arrays.equals(tokens, begin, begin + n, tokens, length - n, length)) {
          int count = Math.clamp(limit - length, 0, most);
          return Arrays.copyOfRange(tokens, begin + n, Math.min(begin + n + count, length));
        }
      }
    }
    return new int[0];
  }
}
