package dev.tacho.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The largest logit, found in pieces by several. */
class RowMaximaTest {
  private static final float NONE = Float.NEGATIVE_INFINITY;

  private static RowMaxima of(float... logits) {
    RowMaxima maxima = new RowMaxima(1);
    maxima.clear(0);
    maxima.fold(0, MemorySegment.ofArray(logits), 0, 0, logits.length);
    return maxima;
  }

  @Test
  void theLowestOfEqualColumnsIsTaken() {
    assertThat(of(-3, 2, 1, 2).id(0)).isEqualTo(1);
    assertThat(of(-0f, 0f).id(0)).isZero();
    assertThat(of(NONE, NONE).id(0)).isZero();
    assertThat(of(NONE, -1e30f).id(0)).isEqualTo(1);
  }

  @Test
  void aNanIsSeenAndNeverTaken() {
    RowMaxima maxima = of(Float.NaN, -5, Float.NaN);
    assertThat(maxima.id(0)).isEqualTo(1);
    assertThat(maxima.sawNan(0)).isTrue();
    assertThat(of(Float.NaN, Float.NaN).id(0)).isZero();
    maxima.clear(0);
    assertThat(maxima.sawNan(0)).as("a row that was cleared").isFalse();
  }

  @Test
  void rowsAreApart() {
    RowMaxima maxima = new RowMaxima(2);
    MemorySegment logits = MemorySegment.ofArray(new float[] {9, 9, 1, 2, 3, Float.NaN, 1, 0});
    for (int row = 0; row < 2; row++) {
      maxima.clear(row);
      maxima.fold(row, logits, 2 + 3L * row, 0, 3);
    }
    assertThat(maxima.id(0)).isEqualTo(2);
    assertThat(maxima.id(1)).isEqualTo(1);
    assertThat(maxima.sawNan(0)).isFalse();
    assertThat(maxima.sawNan(1)).isTrue();
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void piecesOfSeveralInAnyOrderGiveWhatTheWholeGives(long seed) {
    Random random = new Random(seed);
    float[] logits = new float[random.nextInt(1, 200)];
    for (int i = 0; i < logits.length; i++) {
      // Many ties, some NaN and some that are ruled out.
      int kind = random.nextInt(20);
      logits[i] = kind == 0 ? Float.NaN : kind == 1 ? NONE : random.nextInt(5);
    }
    int expected = 0;
    boolean nan = Float.isNaN(logits[0]);
    for (int i = 1; i < logits.length; i++) {
      nan |= Float.isNaN(logits[i]);
      if (logits[i] > logits[expected] || (Float.isNaN(logits[expected]) && logits[i] > NONE)) {
        expected = i;
      }
    }
    RowMaxima[] members = {new RowMaxima(1), new RowMaxima(1), new RowMaxima(1)};
    for (RowMaxima member : members) {
      member.clear(0);
    }
    for (int end = logits.length; end > 0; ) {
      int begin = random.nextInt(end);
      members[random.nextInt(3)].fold(0, MemorySegment.ofArray(logits), 0, begin, end);
      end = begin;
    }
    members[1].merge(0, members[0]);
    members[1].merge(0, members[2]);
    assertThat(members[1].id(0)).isEqualTo(Float.isNaN(logits[expected]) ? 0 : expected);
    assertThat(members[1].sawNan(0)).isEqualTo(nan);
  }
}
