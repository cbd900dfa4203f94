package dev.tacho.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SelectionTest {
  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5})
  void agreesWithSorting(long seed) {
    Random random = new Random(seed);
    for (int round = 0; round < 200; round++) {
      float[] values = new float[1 + random.nextInt(60)];
      int distinct = 1 + random.nextInt(40);
      for (int i = 0; i < values.length; i++) {
        values[i] = random.nextInt(distinct) - 10;
      }
      if (random.nextBoolean()) {
        Arrays.sort(values);
      }
      float[] sorted = values.clone();
      Arrays.sort(sorted);
      int k = 1 + random.nextInt(values.length);
      assertThat(Selection.largest(values.clone(), values.length, k)).isEqualTo(sorted[values.length - k]);
    }
  }
}
