package dev.tacho.engine;

import dev.tacho.engine.model.Weights;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Says how far the loading of weights has come, if it takes longer than a second, and lets go of what has been read of
 * the file, so that the process never holds a model twice. Used by the thread that loads.
 */
final class LoadingProgress implements Weights.Progress {
  private static final long INTERVAL_NANOS = 1_000_000_000L;
  private static final long PERCENT = 100;

  private final LongSupplier clock;
  private final Consumer<String> line;
  private final Consumer<MemorySegment> release;
  private long lastNanos;

  /**
   * @param clock as {@link System#nanoTime}
   * @param line gets what is to be logged
   * @param release lets go of the pages of a mapped file
   */
  LoadingProgress(LongSupplier clock, Consumer<String> line, Consumer<MemorySegment> release) {
    this.clock = clock;
    this.line = line;
    this.release = release;
    lastNanos = clock.getAsLong();
  }

  @Override
  public void loaded(long loadedBytes, long totalBytes, MemorySegment source) {
    release.accept(source);
    long now = clock.getAsLong();
    if (now - lastNanos >= INTERVAL_NANOS) {
      lastNanos = now;
      line.accept(
          "loading weights: " + PERCENT * loadedBytes / totalBytes + " %, " + new MemorySize(loadedBytes).human()
              + " of " + new MemorySize(totalBytes).human());
    }
  }
}
