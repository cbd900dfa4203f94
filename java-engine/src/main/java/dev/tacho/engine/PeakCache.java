package dev.tacho.engine;

import dev.tacho.metrics.perf.DevicePeaks;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.Properties;
import org.jspecify.annotations.Nullable;

/**
 * Peaks that were measured before while nobody else used the machine, a file for each subject in a directory of the
 * user. What cannot be read is measured again, what cannot be written is not remembered. Who deletes a file has its
 * peaks measured anew.
 *
 * @param directory made with the first write
 */
record PeakCache(Path directory) {
  private static final String SUBJECT = "subject";
  private static final String FLOPS = "flops_per_second";
  private static final String BANDWIDTH = "bytes_per_second";
  // Says that nobody else used the machine meanwhile; what lacks it may be much too low.
  private static final String UNDISTURBED = "undisturbed";

  /** That of the user: in {@code XDG_CACHE_HOME} or, without it, {@code ~/.cache}. */
  static PeakCache ofUser(Map<String, String> environment) {
    String base = environment.getOrDefault("XDG_CACHE_HOME", "");
    Path caches =
        base.startsWith("/") ? Path.of(base) : Path.of(System.getProperty("user.home", "")).resolve(".cache");
    return new PeakCache(caches.resolve("tacho"));
  }

  private Path file(String subject) {
    return directory.resolve("peaks-" + Integer.toHexString(subject.hashCode()) + ".properties");
  }

  /** What was stored for a subject, or null. */
  @Nullable DevicePeaks find(String subject) {
    Properties stored = new Properties();
    try (InputStream in = Files.newInputStream(file(subject))) {
      stored.load(in);
      if (!subject.equals(stored.getProperty(SUBJECT)) || stored.getProperty(UNDISTURBED) == null) {
        return null;
      }
      return new DevicePeaks(
          Double.parseDouble(stored.getProperty(FLOPS, "")), Double.parseDouble(stored.getProperty(BANDWIDTH, "")));
    } catch (IOException | IllegalArgumentException unreadable) {
      return null;
    }
  }

  /**
   * Stores.
   *
   * @throws IOException if it cannot be written
   */
  void store(String subject, DevicePeaks peaks) throws IOException {
    Properties stored = new Properties();
    stored.setProperty(SUBJECT, subject);
    stored.setProperty(UNDISTURBED, "true");
    stored.setProperty(FLOPS, Double.toString(peaks.flopsPerSecond()));
    stored.setProperty(BANDWIDTH, Double.toString(peaks.bytesPerSecond()));
    Files.createDirectories(directory);
    Path written = Files.createTempFile(directory, "peaks", ".tmp");
    try {
      try (OutputStream out = Files.newOutputStream(written)) {
        stored.store(out, null);
      }
      Files.move(written, file(subject), StandardCopyOption.ATOMIC_MOVE);
    } finally {
      // There only if something went wrong: the disk is full, say.
      Files.deleteIfExists(written);
    }
  }
}
