package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;

/**
 * Rows of floats off-heap, poisoned with a NaN wherever no element lies: before, after and between the rows. What a
 * kernel reads there shows in its results, what it writes there shows in {@link #assertPoisonUntouched}.
 */
final class Matrix {
  private static final int POISON = 0x7fc0beef;
  private static final long GUARD_INTS = 64;

  private final int rows;
  private final int columns;
  private final int ld;
  private final MemorySegment whole;
  private final MemorySegment segment;

  Matrix(Arena arena, int rows, int columns, int ld) {
    this.rows = rows;
    this.columns = columns;
    this.ld = ld;
    long elements = rows == 0 ? 0 : (rows - 1L) * ld + columns;
    whole = arena.allocate(JAVA_INT, elements + 2 * GUARD_INTS);
    for (long i = 0; i < elements + 2 * GUARD_INTS; i++) {
      whole.setAtIndex(JAVA_INT, i, POISON);
    }
    segment = whole.asSlice(GUARD_INTS * Integer.BYTES, elements * Float.BYTES);
  }

  int rows() {
    return rows;
  }

  int columns() {
    return columns;
  }

  int ld() {
    return ld;
  }

  /** The elements, not a byte more. */
  MemorySegment segment() {
    return segment;
  }

  /** The memory of one row alone. */
  MemorySegment row(int i) {
    return segment.asSlice((long) i * ld * Float.BYTES, (long) columns * Float.BYTES);
  }

  float get(int i, int j) {
    return segment.getAtIndex(JAVA_FLOAT, (long) i * ld + j);
  }

  void set(int i, int j, float value) {
    segment.setAtIndex(JAVA_FLOAT, (long) i * ld + j, value);
  }

  /** Fills every element from a normal distribution. */
  Matrix fill(Random random) {
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        set(i, j, (float) random.nextGaussian());
      }
    }
    return this;
  }

  Matrix copy(Arena arena) {
    Matrix copy = new Matrix(arena, rows, columns, ld);
    copy.whole.copyFrom(whole);
    return copy;
  }

  void assertPoisonUntouched(String name) {
    for (long i = 0; i < whole.byteSize() / Integer.BYTES; i++) {
      long element = i - GUARD_INTS;
      boolean inside = element >= 0 && element < segment.byteSize() / Float.BYTES && element % ld < columns;
      if (!inside && whole.getAtIndex(JAVA_INT, i) != POISON) {
        throw new AssertionError(name + " was written outside its shape, at element " + element);
      }
    }
  }

  void assertSameBits(String name, Matrix other) {
    assertThat(whole.mismatch(other.whole)).as("%s: first byte that differs", name).isEqualTo(-1);
  }

  /** Every element is within {@code tolerance.of(i, j)} of the expected one. */
  void assertNear(String name, Matrix expected, Tolerance tolerance) {
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        double difference = Math.abs((double) get(i, j) - expected.get(i, j));
        if (!(difference <= tolerance.of(i, j))) {
          throw new AssertionError(
              name + "[" + i + "][" + j + "] is " + get(i, j) + ", expected " + expected.get(i, j) + " +- "
                  + tolerance.of(i, j));
        }
      }
    }
  }

  /** How far an element may be off. */
  interface Tolerance {
    double of(int i, int j);
  }
}
