package dev.tacho.metrics.ring;

import dev.tacho.metrics.page.ProcessFile;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A file whose data is an {@link EventRing}: the control block, then its segments one after another as they were
 * needed. A segment that the ring gives back is used again before the file grows. The ring's maker and its consumer use
 * it, one at a time; the producer's thread never does. A {@link FlightRecorder} reads it.
 */
public final class RingFile implements SegmentSource {
  private static final Logger LOG = LoggerFactory.getLogger(RingFile.class);

  private final ProcessFile file;
  private final List<MemorySegment> free = new ArrayList<>();
  private boolean full;

  private RingFile(ProcessFile file) {
    this.file = file;
  }

  /**
   * A ring in a new file of this process.
   *
   * @param directory where the file is to lie
   * @param names what the process says about the ring
   * @param firstBytes size of the first segment, a power of two
   * @param maxBytes limit of all segments together
   * @return the file, to tell the time and to delete it, and the ring
   * @throws IOException if the file cannot be made
   */
  public static ProcessFile.Filled<EventRing> create(Path directory, String names, int firstBytes, int maxBytes)
      throws IOException {
    try {
      return ProcessFile.create(directory, ProcessFile.Kind.RING, names,
          file -> new EventRing(firstBytes, maxBytes, new RingFile(file)));
    } catch (IllegalStateException e) {
      throw new IOException("a ring in " + directory + " could not be made: " + e.getMessage(), e);
    }
  }

  @Override
  public @Nullable MemorySegment allocate(long bytes) {
    for (int i = 0; i < free.size(); i++) {
      if (free.get(i).byteSize() == bytes) {
        return free.remove(i);
      }
    }
    try {
      return full ? null : file.append(bytes);
    } catch (IOException e) {
      full = true;
      LOG.warn("{} cannot grow and stays as it is; events may be lost", file, e);
      return null;
    }
  }

  @Override
  public void release(MemorySegment memory) {
    free.add(memory);
  }
}
