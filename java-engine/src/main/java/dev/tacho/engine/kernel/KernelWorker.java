package dev.tacho.engine.kernel;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What one worker thread brings to a kernel: its counter lines, its scratch, and room for a params struct. One
 * thread at a time; the memory belongs to the arena given at construction.
 *
 * <pre>
 *   counters [Operation.values().length] lines of 64 bytes, as tacho_counters in tacho.h:
 *     0 calls | 8 flops | 16 read_bytes | 24 write_bytes | 32 nanos | 40..63 reserved        (int64 each)
 * </pre>
 */
public final class KernelWorker {
  /** Bytes of a counter line. */
  public static final int LINE_BYTES = 64;

  /** Offset of the number of calls in a line. */
  public static final int CALLS_OFFSET = 0;

  /** Offset of the floating point operations in a line. */
  public static final int FLOPS_OFFSET = 8;

  /** Offset of the bytes read in a line. */
  public static final int READ_BYTES_OFFSET = 16;

  /** Offset of the bytes written in a line. */
  public static final int WRITE_BYTES_OFFSET = 24;

  /** Offset of the nanoseconds in a line. */
  public static final int NANOS_OFFSET = 32;

  /** Bytes of scratch that every worker has, so that only attention has to ask for more. */
  public static final int MIN_SCRATCH_BYTES = 64 << 10;

  /** Bytes kept for a params struct of the native library. */
  public static final int PARAMS_BYTES = 512;

  private final MemorySegment counters;
  private final MemorySegment[] lines;
  private final MemorySegment scratch;
  private final MemorySegment params;
  private long since;

  /**
   * @param arena shared, lives as long as the worker is used
   * @param scratchBytes {@link Kernels#attentionScratchBytes} of the largest shape; at least {@link
   *     #MIN_SCRATCH_BYTES} are there in any case
   */
  public KernelWorker(Arena arena, long scratchBytes) {
    Operation[] operations = Operation.values();
    counters = arena.allocate((long) LINE_BYTES * operations.length, LINE_BYTES);
    lines = new MemorySegment[operations.length];
    for (int i = 0; i < lines.length; i++) {
      lines[i] = counters.asSlice((long) i * LINE_BYTES, LINE_BYTES);
    }
    scratch = arena.allocate(Math.max(scratchBytes, MIN_SCRATCH_BYTES), LINE_BYTES);
    params = arena.allocate(PARAMS_BYTES, LINE_BYTES);
  }

  /** The counter line of an operation, 64 bytes. */
  public MemorySegment line(Operation operation) {
    return lines[operation.ordinal()];
  }

  /** All counter lines, one after the other in the order of {@link Operation}. */
  public MemorySegment counters() {
    return counters;
  }

  /** Scratch of this thread; holds nothing between two calls. */
  public MemorySegment scratch() {
    return scratch;
  }

  /** Room for a params struct. */
  public MemorySegment params() {
    return params;
  }

  /** Adds one call and its work to an operation's line. */
  public void count(Operation operation, long flops, long readBytes, long writeBytes) {
    MemorySegment line = lines[operation.ordinal()];
    add(line, CALLS_OFFSET, 1);
    add(line, FLOPS_OFFSET, flops);
    add(line, READ_BYTES_OFFSET, readBytes);
    add(line, WRITE_BYTES_OFFSET, writeBytes);
  }

  /** Begins to measure time: what passes up to the next {@link #endNanos} is that operation's. */
  public void beginNanos() {
    since = System.nanoTime();
  }

  /**
   * Adds the nanoseconds since the last call of this method or of {@link #beginNanos} to an operation's line, so that
   * operations one after the other cost one reading of the clock each. The kernels do not measure themselves: it is for
   * who calls them.
   */
  public void endNanos(Operation operation) {
    long now = System.nanoTime();
    add(lines[operation.ordinal()], NANOS_OFFSET, now - since);
    since = now;
  }

  private static void add(MemorySegment line, int offset, long amount) {
    line.set(ValueLayout.JAVA_LONG, offset, line.get(ValueLayout.JAVA_LONG, offset) + amount);
  }
}
