package dev.tacho.metrics.stats;

import java.util.Arrays;

/** A list of numbers that is filled, read and emptied again by one thread without new garbage. */
public final class Samples {
  private double[] values = new double[16];
  private int size;

  /** Appends a number. */
  public void add(double value) {
    if (size == values.length) {
      values = Arrays.copyOf(values, size * 2);
    }
    values[size++] = value;
  }

  /** Appends the numbers of another list. */
  public void add(Samples other) {
    for (int i = 0; i < other.size; i++) {
      add(other.values[i]);
    }
  }

  /** Numbers in the list. */
  public int size() {
    return size;
  }

  /** A number. */
  public double get(int index) {
    if (index >= size) {
      throw new IndexOutOfBoundsException("sample " + index + " of " + size);
    }
    return values[index];
  }

  /** Empties the list. */
  public void clear() {
    size = 0;
  }

  /** A copy of the numbers. */
  public double[] toArray() {
    return Arrays.copyOf(values, size);
  }
}
