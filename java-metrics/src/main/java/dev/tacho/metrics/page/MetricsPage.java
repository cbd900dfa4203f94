package dev.tacho.metrics.page;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Every value that an engine publishes, outside the heap: gauges, counters, bucket counts and sums. One writer, the
 * collector; readers in this JVM copy the page under the collector's lock and so see one moment.
 *
 * <pre>
 *   0  magic    "TACHOPG1"
 *   8  cells    number of values
 *  16  (zero to byte 64)
 *  64  value 0 | value 1 | ...         8 bytes each, little-endian: a double, or a count as a long
 * </pre>
 *
 * <p>What a cell means is decided by whoever lays the page out; a page does not know.
 */
public final class MetricsPage {
  /** Bytes before the first value. */
  public static final int HEADER_BYTES = 64;

  private static final long MAGIC = 0x31_47_50_4F_48_43_41_54L;
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfDouble DOUBLE = ValueLayout.JAVA_DOUBLE.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final MemorySegment memory;
  private final MemorySegment values;
  private final int cells;

  /**
   * A page outside the heap.
   *
   * @param cells number of values, all 0
   */
  public MetricsPage(int cells) {
    this(Arena.ofAuto().allocate(HEADER_BYTES + (long) cells * Long.BYTES, HEADER_BYTES), cells);
  }

  /**
   * A page in memory of someone else.
   *
   * @param memory zeroed, {@value #HEADER_BYTES} bytes and 8 for each value
   * @param cells number of values
   */
  public MetricsPage(MemorySegment memory, int cells) {
    if (cells < 0 || memory.byteSize() < HEADER_BYTES + (long) cells * Long.BYTES) {
      throw new IllegalArgumentException("metrics page of " + memory.byteSize() + " bytes is too small for " + cells
          + " values");
    }
    this.memory = memory;
    this.values = memory.asSlice(HEADER_BYTES, (long) cells * Long.BYTES);
    this.cells = cells;
    memory.set(LONG, 8, cells);
    memory.set(LONG, 0, MAGIC);
  }

  /** Number of values. */
  public int cells() {
    return cells;
  }

  /** The page's bytes, header included. */
  public MemorySegment memory() {
    return memory;
  }

  /** Sets a value. */
  public void set(int cell, double value) {
    values.setAtIndex(DOUBLE, cell, value);
  }

  /** Adds to a value. */
  public void add(int cell, double delta) {
    values.setAtIndex(DOUBLE, cell, values.getAtIndex(DOUBLE, cell) + delta);
  }

  /** Sets a value to a whole number, exact up to 2^53. */
  public void set(int cell, long value) {
    set(cell, (double) value);
  }

  /** Adds a whole number to a value; exact as long as the sum is below 2^53. */
  public void add(int cell, long delta) {
    add(cell, (double) delta);
  }

  /** Adds 1 to a count. */
  public void increment(int cell) {
    values.setAtIndex(LONG, cell, values.getAtIndex(LONG, cell) + 1);
  }

  /** Reads a value. */
  public double get(int cell) {
    return values.getAtIndex(DOUBLE, cell);
  }

  /** Reads a count. */
  public long count(int cell) {
    return values.getAtIndex(LONG, cell);
  }

  /**
   * Copies all values into a page of the same size.
   *
   * @param target gets them
   */
  public void copyTo(MetricsPage target) {
    MemorySegment.copy(values, 0, target.values, 0, values.byteSize());
  }
}
