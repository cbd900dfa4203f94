package dev.tacho.metrics.perf;

/** Sums the estimated work of a step on one device. Reused from step to step by one thread. */
public final class WorkEstimate implements WorkSink {
  private long flops;
  private long readBytes;
  private long writeBytes;
  private final WorkBreakdown parts = new WorkBreakdown();

  /** Empties the sums. */
  public void reset() {
    set(0, 0, 0);
    parts.clear();
  }

  /** Adds the work of another, its parts included. */
  public void add(WorkEstimate other) {
    flops += other.flops;
    readBytes += other.readBytes;
    writeBytes += other.writeBytes;
    parts.add(other.parts);
  }

  /** The parts of the work, empty unless the estimator keeps them. */
  public WorkBreakdown parts() {
    return parts;
  }

  /** Sets the sums. */
  public void set(long newFlops, long newReadBytes, long newWriteBytes) {
    flops = newFlops;
    readBytes = newReadBytes;
    writeBytes = newWriteBytes;
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

  /** True if nothing was estimated. */
  public boolean isZero() {
    return flops == 0 && readBytes == 0 && writeBytes == 0;
  }

  @Override
  public void flops(String part, long operations) {
    flops += operations;
  }

  @Override
  public void read(String part, long bytes) {
    readBytes += bytes;
  }

  @Override
  public void write(String part, long bytes) {
    writeBytes += bytes;
  }
}
