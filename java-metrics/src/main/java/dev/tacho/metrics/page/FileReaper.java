package dev.tacho.metrics.page;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Deletes what dead processes left in a directory: pages, unfinished files, and rings, but not those of the last one.
 * Of dead processes' rings with the same {@link ProcessFile#names}, so of the same engine, those stay whose process
 * gave the last sign of life; whoever asks why it died reads them. They take the place of those of the one before.
 *
 * <p>A file whose process cannot be seen from here must have given no sign of life for {@value #REAP_MILLIS} ms: told
 * no time, and not been written. What cannot be deleted stays.
 */
public final class FileReaper {
  /** A file of a process that cannot be seen is reaped after so long without a sign of life. */
  public static final long REAP_MILLIS = 600_000;

  private static final Logger LOG = LoggerFactory.getLogger(FileReaper.class);

  private FileReaper() {}

  /**
   * Deletes.
   *
   * @return how many files
   * @throws IOException if the directory cannot be read
   */
  public static int reap(Path directory) throws IOException {
    List<Path> reaped = new ArrayList<>();
    List<ProcessFile> deadRings = new ArrayList<>();
    for (ProcessFile.Kind kind : ProcessFile.Kind.values()) {
      String pattern = "tacho-*" + kind.suffix() + "{," + ProcessFile.TEMPORARY + "}";
      try (DirectoryStream<Path> paths = Files.newDirectoryStream(directory, pattern)) {
        for (Path path : paths) {
          look(path, kind, reaped, deadRings);
        }
      }
    }
    Set<Path> kept = last(deadRings);
    deadRings.stream().map(ProcessFile::path).filter(path -> !kept.contains(path)).forEach(reaped::add);
    reaped.removeIf(path -> !isDeleted(path));
    return reaped.size();
  }

  private static boolean isDeleted(Path path) {
    try {
      return Files.deleteIfExists(path);
    } catch (IOException e) {
      LOG.debug("{} of a dead process cannot be deleted", path, e);
      return false;
    }
  }

  private static void look(Path path, ProcessFile.Kind kind, List<Path> reaped, List<ProcessFile> deadRings) {
    if (!Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    boolean unfinished = path.toString().endsWith(ProcessFile.TEMPORARY);
    try {
      ProcessFile file = ProcessFile.open(path, kind);
      if (!file.isStale() || !(file.isOfThisNamespace() || isSilent(path, file.toldMillis()))) {
        return;
      }
      if (kind == ProcessFile.Kind.RING && !unfinished) {
        deadRings.add(file);
      } else {
        reaped.add(path);
      }
    } catch (IOException e) {
      // Unfinished, it may lack its header, and then nobody knows whose it is.
      if (unfinished && isSilent(path, 0)) {
        reaped.add(path);
      }
    }
  }

  /** Of rings with the same names, those of the process that told the time last in any of its rings. */
  private static Set<Path> last(List<ProcessFile> rings) {
    Map<String, Long> told = new HashMap<>();
    rings.forEach(ring -> told.merge(ring.process(), ring.toldMillis(), Math::max));
    Comparator<ProcessFile> byDeath =
        Comparator.comparing((ProcessFile ring) -> told.get(ring.process())).thenComparing(ProcessFile::process);
    Map<String, String> lastProcess = new HashMap<>();
    rings.stream().sorted(byDeath).forEach(ring -> lastProcess.put(ring.names(), ring.process()));
    Set<Path> paths = new HashSet<>();
    for (ProcessFile ring : rings) {
      if (ring.process().equals(lastProcess.get(ring.names()))) {
        paths.add(ring.path());
      }
    }
    return paths;
  }

  private static boolean isSilent(Path path, long toldMillis) {
    try {
      long written = Files.getLastModifiedTime(path).toMillis();
      return System.currentTimeMillis() - Math.max(toldMillis, written) > REAP_MILLIS;
    } catch (IOException e) {
      return false;
    }
  }
}
