package dev.tacho.metrics.page;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Every value that an engine publishes, outside the heap: gauges, counters, bucket counts and sums. One writer, the
 * collector; readers in this JVM copy the page under the collector's lock and so see one moment. Readers in another
 * process use {@link #tryCopyTo}, which sees one moment or fails.
 *
 * <pre>
 *   0  magic    "TACHOPG1"
 *   8  cells    number of values
 *  16  lock     odd while values change
 *  24  updated  when they changed last, milliseconds since 1970
 *  32  (zero to byte 64)
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
  private static final VarHandle CELL = LONG.varHandle();
  private static final long LOCK = 16;
  private static final long UPDATED = 24;
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
    this(cells, memory);
    memory.set(LONG, 8, cells);
    memory.set(LONG, 0, MAGIC);
  }

  private MetricsPage(int cells, MemorySegment memory) {
    if (cells < 0 || memory.byteSize() < HEADER_BYTES + (long) cells * Long.BYTES) {
      throw new IllegalArgumentException("metrics page of " + memory.byteSize() + " bytes is too small for " + cells
          + " values");
    }
    this.memory = memory;
    this.values = memory.asSlice(HEADER_BYTES, (long) cells * Long.BYTES);
    this.cells = cells;
  }

  /**
   * A page that somebody else writes; only to be read.
   *
   * @param memory the page's, may be read-only
   * @param cells number of values that it must have
   * @throws IllegalArgumentException if it is no page or has another number of values
   */
  public static MetricsPage ofOther(MemorySegment memory, int cells) {
    if (memory.byteSize() < HEADER_BYTES || memory.get(LONG, 0) != MAGIC || memory.get(LONG, 8) != cells) {
      throw new IllegalArgumentException("no metrics page of " + cells + " values");
    }
    return new MetricsPage(cells, memory);
  }

  /** The writer is about to change values; readers in other processes wait for {@link #endUpdate}. Idempotent. */
  public void beginUpdate() {
    long lock = memory.get(LONG, LOCK);
    if ((lock & 1) == 0) {
      CELL.setRelease(memory, LOCK, lock + 1);
      VarHandle.storeStoreFence();
    }
  }

  /**
   * The writer has changed values.
   *
   * @param wallMillis now, in milliseconds since 1970
   */
  public void endUpdate(long wallMillis) {
    memory.set(LONG, UPDATED, wallMillis);
    long lock = memory.get(LONG, LOCK);
    if ((lock & 1) != 0) {
      CELL.setRelease(memory, LOCK, lock + 1);
    }
  }

  /** When values changed last, in milliseconds since 1970. */
  public long updatedMillis() {
    return memory.get(LONG, UPDATED);
  }

  /**
   * Copies the values of one moment, from a page that another process writes.
   *
   * @param target gets them, a page of the same size
   * @param alsoRead reads what else belongs to the moment
   * @return false if they were changed meanwhile: try again, or take it that their writer was killed at it
   */
  public boolean tryCopyTo(MetricsPage target, Runnable alsoRead) {
    long before = (long) CELL.getAcquire(memory, LOCK);
    copyTo(target);
    target.memory.set(LONG, UPDATED, updatedMillis());
    alsoRead.run();
    VarHandle.loadLoadFence();
    return (before & 1) == 0 && (long) CELL.getAcquire(memory, LOCK) == before;
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

  /** Adds to a count. */
  public void increment(int cell, long times) {
    values.setAtIndex(LONG, cell, values.getAtIndex(LONG, cell) + times);
  }

  /** Sets all values to 0. */
  public void clear() {
    values.fill((byte) 0);
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
