package dev.tacho.engine.model;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import java.lang.foreign.MemorySegment;

/**
 * Angles of rotary position embedding. Computed in double for each token of a step rather than kept in a table of all
 * positions: a long context would make that table larger than the layers' own scratch. Immutable, safe for any thread.
 */
final class RopeFrequencies {
  private final double[] inverse;

  /**
   * @param rope of the model
   * @param factors divisors of the frequencies, one a pair, or empty
   */
  RopeFrequencies(RopeConfig rope, double[] factors) {
    inverse = new double[rope.dimensions() / 2];
    if (factors.length != 0 && factors.length != inverse.length) {
      throw new IllegalArgumentException(factors.length + " rope factors for " + inverse.length + " pairs");
    }
    for (int i = 0; i < inverse.length; i++) {
      double frequency = Math.pow(rope.base(), -2.0 * i / rope.dimensions()) / rope.linearFactor();
      inverse[i] = factors.length == 0 ? frequency : frequency / factors[i];
    }
  }

  /** Floats of one token's row: cosine and sine of each pair. */
  int rowFloats() {
    return inverse.length * 2;
  }

  /** Writes cosine and sine of each pair at a position into a row of {@code cosSin}, float32 [rows][pairs][2]. */
  void write(int position, MemorySegment cosSin, int row) {
    long at = (long) row * rowFloats();
    for (double frequency : inverse) {
      double angle = position * frequency;
      cosSin.setAtIndex(JAVA_FLOAT, at++, (float) Math.cos(angle));
      cosSin.setAtIndex(JAVA_FLOAT, at++, (float) Math.sin(angle));
    }
  }
}
