package dev.tacho.metrics.page;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * Counters that threads of Java and native code add to and the collector reads, each on a cache line of its own.
 *
 * <pre>
 *  cell i lies at byte 64 i
 *  +-----------------+--------------------+
 *  | value, 8 bytes  | 56 bytes unused    |   native byte order, as C sees an int64_t
 *  +-----------------+--------------------+
 * </pre>
 *
 * <p>The first cells are those of {@link EngineCounter}; the engine gives the others their meaning. Memory: outside the
 * heap, freed when the page and every segment taken from it are unreachable; a caller that hands an address to native
 * code keeps the page. Totals never overflow in practice and wrap if they do.
 */
public final class CounterPage {
  /** Bytes from one cell to the next. */
  public static final int CELL_BYTES = 64;

  private static final VarHandle VALUE = ValueLayout.JAVA_LONG.varHandle();
  private static final int FIXED = EngineCounter.values().length;

  private final MemorySegment memory;
  private final int cells;

  /** A page with the engine's cells alone. */
  public CounterPage() {
    this(0);
  }

  /**
   * A page with more cells than the engine's.
   *
   * @param extraCells how many more
   */
  public CounterPage(int extraCells) {
    this(Arena.ofAuto().allocate((long) (FIXED + extraCells) * CELL_BYTES, CELL_BYTES));
  }

  /**
   * A page in memory of someone else.
   *
   * @param memory zeroed, aligned to 64 bytes, at least {@value #CELL_BYTES} bytes for each engine counter
   */
  public CounterPage(MemorySegment memory) {
    long count = memory.byteSize() / CELL_BYTES;
    if (count < FIXED || count > Integer.MAX_VALUE || memory.maxByteAlignment() < CELL_BYTES) {
      throw new IllegalArgumentException("counter page of " + memory.byteSize() + " bytes, alignment "
          + memory.maxByteAlignment() + ": must hold " + FIXED + " cells of " + CELL_BYTES + " aligned bytes");
    }
    this.memory = memory;
    this.cells = (int) count;
  }

  /** Number of the first cell beyond the engine's. */
  public int firstExtraCell() {
    return FIXED;
  }

  /** Bytes of the page. */
  public long bytes() {
    return memory.byteSize();
  }

  /** Cells of the page. */
  public int cells() {
    return cells;
  }

  /** Adds to an engine counter. Any thread. */
  public void add(EngineCounter counter, long delta) {
    add(counter.id(), delta);
  }

  /** Adds to a cell. Any thread. */
  public void add(int cell, long delta) {
    VALUE.getAndAdd(memory, offset(cell), delta);
  }

  /** Adds to a cell that no other thread writes; cheaper than {@link #add(EngineCounter, long)}. */
  public void addAsOnlyWriter(EngineCounter counter, long delta) {
    long at = offset(counter.id());
    VALUE.setRelease(memory, at, (long) VALUE.get(memory, at) + delta);
  }

  /** Sets a cell. Any thread. */
  public void set(EngineCounter counter, long value) {
    VALUE.setRelease(memory, offset(counter.id()), value);
  }

  /** Reads an engine counter. Any thread. */
  public long get(EngineCounter counter) {
    return get(counter.id());
  }

  /** Reads a cell. Any thread. */
  public long get(int cell) {
    return (long) VALUE.getAcquire(memory, offset(cell));
  }

  /** The 8 bytes of a cell, for native code to add to. */
  public MemorySegment cell(int cell) {
    return memory.asSlice(offset(cell), Long.BYTES);
  }

  private long offset(int cell) {
    if (cell < 0 || cell >= cells) {
      throw new IndexOutOfBoundsException("cell " + cell + " of " + cells);
    }
    return (long) cell * CELL_BYTES;
  }
}
