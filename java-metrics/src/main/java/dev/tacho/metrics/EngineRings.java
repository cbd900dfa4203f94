package dev.tacho.metrics;

import dev.tacho.metrics.page.FileReaper;
import dev.tacho.metrics.page.ProcessFile;
import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.ring.RingFile;
import dev.tacho.metrics.ring.SegmentSource;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The two rings of an engine, in memory of this process or in files that others read. */
final class EngineRings implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(EngineRings.class);
  /** The output thread writes one short record a step, and now and then another. */
  private static final int OUTPUT_RING_BYTES = 1 << 16;
  private static final long TIME_INTERVAL_NANOS = 1_000_000_000;

  private final EventRing engine;
  private final EventRing output;
  private final List<ProcessFile> files;
  private long toldNanos;

  private EngineRings(EventRing engine, EventRing output, List<ProcessFile> files) {
    this.engine = engine;
    this.output = output;
    this.files = files;
  }

  /**
   * Makes them.
   *
   * @throws UncheckedIOException if they are to lie in files and these cannot be made
   */
  static EngineRings of(EngineMetricsOptions options) {
    Path directory = options.directory();
    if (directory == null) {
      return new EngineRings(new EventRing(),
          new EventRing(OUTPUT_RING_BYTES, EventRing.DEFAULT_MAX_BYTES, SegmentSource.OFF_HEAP), List.of());
    }
    List<ProcessFile> files = new ArrayList<>();
    try {
      FileReaper.reap(directory);
      String names = "model_name=" + options.modelName() + "\nengine=" + options.engineIndex() + "\nring=";
      var engine = RingFile.create(directory, names + "engine\n", EventRing.DEFAULT_FIRST_BYTES,
          EventRing.DEFAULT_MAX_BYTES);
      files.add(engine.file());
      var output = RingFile.create(directory, names + "output\n", OUTPUT_RING_BYTES, EventRing.DEFAULT_MAX_BYTES);
      files.add(output.file());
      return new EngineRings(engine.content(), output.content(), files);
    } catch (IOException e) {
      delete(files);
      throw new UncheckedIOException("metrics directory " + directory + ": " + e.getMessage(), e);
    }
  }

  /** The engine thread's. */
  EventRing engine() {
    return engine;
  }

  /** The output thread's. */
  EventRing output() {
    return output;
  }

  /** Tells the time in the files if a second has passed. Under the collector's lock. */
  void tellTime(long nanos) {
    if (!files.isEmpty() && (toldNanos == 0 || nanos - toldNanos >= TIME_INTERVAL_NANOS)) {
      toldNanos = nanos;
      files.forEach(ProcessFile::tellTime);
    }
  }

  /** Bytes of both. Under the collector's lock. */
  long bytes() {
    return engine.bytes() + output.bytes();
  }

  /** Takes the files away. */
  @Override
  public void close() {
    delete(files);
  }

  private static void delete(List<ProcessFile> files) {
    for (ProcessFile file : files) {
      try {
        file.delete();
      } catch (IOException e) {
        LOG.warn("{} could not be deleted", file, e);
      }
    }
  }
}
