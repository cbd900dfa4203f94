package dev.tacho.metrics.perf;

/** Totals of an engine's device since the engine was opened. Filled by a {@link CounterSource}; one thread. */
public final class DeviceCounters {
  private final long[] workerWaitNanos;
  private long flops;
  private long readBytes;
  private long writeBytes;
  private long ffiCalls;
  private long busyNanos;
  private long bubbleNanos;

  /**
   * Zeros.
   *
   * @param workers workers of the engine, 0 if they are not told apart
   */
  public DeviceCounters(int workers) {
    workerWaitNanos = new long[workers];
  }

  /** Sets what the kernels counted: floating point operations (a multiply-add is two), bytes read, bytes written. */
  public void work(long newFlops, long newReadBytes, long newWriteBytes) {
    flops = newFlops;
    readBytes = newReadBytes;
    writeBytes = newWriteBytes;
  }

  /** Sets the calls from Java into native code. */
  public void ffiCalls(long calls) {
    ffiCalls = calls;
  }

  /**
   * Sets how the device's time was spent, in nanoseconds.
   *
   * @param busy with a step on it
   * @param bubble without one though sequences could run
   */
  public void time(long busy, long bubble) {
    busyNanos = busy;
    bubbleNanos = bubble;
  }

  /** Sets how long a worker waited for the others, in nanoseconds; a worker beyond the engine's is passed over. */
  public void workerWait(int worker, long nanos) {
    if (worker < workerWaitNanos.length) {
      workerWaitNanos[worker] = nanos;
    }
  }

  /** Floating point operations. */
  public long flops() {
    return flops;
  }

  /** Bytes read. */
  public long readBytes() {
    return readBytes;
  }

  /** Bytes written. */
  public long writeBytes() {
    return writeBytes;
  }

  /** Calls from Java into native code. */
  public long ffiCalls() {
    return ffiCalls;
  }

  /** Nanoseconds with a step on the device. */
  public long busyNanos() {
    return busyNanos;
  }

  /** Nanoseconds without one though sequences could run. */
  public long bubbleNanos() {
    return bubbleNanos;
  }

  /** Workers. */
  public int workers() {
    return workerWaitNanos.length;
  }

  /** Nanoseconds that a worker waited. */
  public long workerWaitNanos(int worker) {
    return workerWaitNanos[worker];
  }
}
