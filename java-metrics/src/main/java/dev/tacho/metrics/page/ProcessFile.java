package dev.tacho.metrics.page;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A file through which a process shows its memory to others, who only read: a page of values or a ring of events. One
 * process writes it, and deletes it when it is done; a process that dies leaves it behind, which {@link #isStale} sees.
 *
 * <pre>
 *    0  magic     "TACHOFL1"
 *    8  version   int, {@value #VERSION}       12  kind        int, see {@link Kind}
 *   16  pid       long                         24  start       long, milliseconds since 1970, 0 if unknown
 *   32  pid namespace  long, 0 if unknown      40  clock lock  long, odd while the pair is written
 *   48  nanoTime  long                         56  wall clock  long, milliseconds since 1970, of the same moment
 *   64  names     int, bytes of the names      68  data        int, offset of the data, a multiple of 4096
 *   72  end       int, 1 when the process takes the file away itself
 *  128  names: UTF-8, what the writer says about itself
 *  data
 * </pre>
 *
 * <p>Numbers are little-endian. The file is made under a temporary name, readable by its owner alone, filled with zeros
 * to its last byte (a hole in a file on a full disk would kill the process that writes into its mapping), and renamed
 * when it is whole. Mappings end when nothing refers to their memory.
 */
public final class ProcessFile {
  /** What a file holds; the number is in the file. */
  public enum Kind {
    /** Published values: a {@link MetricsPage}. */
    PAGE(1, ".page"),
    /** A ring of events. */
    RING(2, ".ring");

    private final int id;
    private final String suffix;

    Kind(int id, String suffix) {
      this.id = id;
      this.suffix = suffix;
    }

    /** How the names of such files end. */
    public String suffix() {
      return suffix;
    }
  }

  /** Version of this layout and of those of the data. */
  public static final int VERSION = 1;
  /** A clock pair older than this is of a process that stands still, was killed or cannot be seen. */
  public static final long FRESH_MILLIS = 10_000;

  /** How the name of a file ends that is not finished. */
  static final String TEMPORARY = ".tmp";

  private static final long MAGIC = 0x31_4C_46_4F_48_43_41_54L;
  private static final int PID = 16;
  private static final int START = 24;
  private static final int NAMESPACE = 32;
  private static final int CLOCK_LOCK = 40;
  private static final int NANOS = 48;
  private static final int WALL = 56;
  private static final int NAMES_BYTES = 64;
  private static final int DATA = 68;
  private static final int END = 72;
  private static final int NAMES = 128;
  private static final int DATA_ALIGNMENT = 4096;
  private static final long START_TOLERANCE_MILLIS = 2000;
  private static final int ZEROS = 1 << 16;
  private static final AtomicInteger NUMBERS = new AtomicInteger();

  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle CELL = LONG.varHandle();

  private volatile Path path;
  private final Kind kind;
  private final MemorySegment header;
  private final String names;

  private ProcessFile(Path path, Kind kind, MemorySegment header) {
    this.path = path;
    this.kind = kind;
    this.header = header;
    byte[] text = header.asSlice(NAMES, header.get(INT, NAMES_BYTES)).toArray(ValueLayout.JAVA_BYTE);
    this.names = new String(text, StandardCharsets.UTF_8);
  }

  /** Gives a file its data before others can see it. */
  @FunctionalInterface
  public interface Filling<T> {
    /** Adds what the file begins with. */
    T fill(ProcessFile file) throws IOException;
  }

  /** A file and what it was filled with. */
  public record Filled<T>(ProcessFile file, T content) {}

  /**
   * Makes a file of this process; others see it when it is filled.
   *
   * @param directory where; made if it is not there, for its owner alone
   * @param kind what it will hold
   * @param names what the process says about it
   * @param filling adds the data, with {@link #append}
   * @throws IOException if the directory is not writable or the disk is full; names the file
   */
  public static <T> Filled<T> create(Path directory, Kind kind, String names, Filling<T> filling) throws IOException {
    createDirectories(directory);
    ProcessHandle self = ProcessHandle.current();
    long start = startMillis(self);
    String name = "tacho-" + self.pid() + "-" + start + "-" + NUMBERS.incrementAndGet() + kind.suffix;
    Path temporary = directory.resolve(name + TEMPORARY);
    Path path = directory.resolve(name);
    byte[] text = names.getBytes(StandardCharsets.UTF_8);
    int data = (NAMES + text.length + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
    boolean whole = false;
    try {
      try (FileChannel channel = FileChannel.open(temporary,
          Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE),
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
        writeZeros(channel, data);
        MemorySegment header = channel.map(MapMode.READ_WRITE, 0, data, Arena.ofAuto());
        header.set(INT, 8, VERSION);
        header.set(INT, 12, kind.id);
        header.set(LONG, PID, self.pid());
        header.set(LONG, START, start);
        header.set(LONG, NAMESPACE, pidNamespace());
        header.set(INT, NAMES_BYTES, text.length);
        header.set(INT, DATA, data);
        MemorySegment.copy(text, 0, header, ValueLayout.JAVA_BYTE, NAMES, text.length);
        header.set(LONG, 0, MAGIC);
      }
      ProcessFile file = open(temporary, kind, MapMode.READ_WRITE);
      file.tellTime();
      T content = filling.fill(file);
      Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE);
      file.path = path;
      whole = true;
      return new Filled<>(file, content);
    } catch (IOException e) {
      throw new IOException(path + " could not be made: " + e.getMessage(), e);
    } finally {
      if (!whole) {
        Files.deleteIfExists(temporary);
      }
    }
  }

  private static void createDirectories(Path directory) throws IOException {
    try {
      Files.createDirectories(directory,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (FileAlreadyExistsException e) {
      throw new IOException(e.getFile() + " is no directory", e);
    } catch (IOException e) {
      throw new IOException("it could not be made (" + e + ")", e);
    }
  }

  /**
   * Opens a file of any process, to read.
   *
   * @throws IOException if it is none of ours, of another version or of another kind; says which
   */
  public static ProcessFile open(Path path, Kind kind) throws IOException {
    return open(path, kind, MapMode.READ_ONLY);
  }

  private static ProcessFile open(Path path, Kind kind, MapMode mode) throws IOException {
    try (FileChannel channel = channel(path, mode)) {
      long size = channel.size();
      if (size < DATA_ALIGNMENT) {
        throw new IOException(path + " has " + size + " bytes: too short for a file of ours");
      }
      MemorySegment first = channel.map(mode, 0, DATA_ALIGNMENT, Arena.ofAuto());
      if (first.get(LONG, 0) != MAGIC) {
        throw new IOException(path + " is no file of ours: it begins with other bytes");
      }
      if (first.get(INT, 8) != VERSION || first.get(INT, 12) != kind.id) {
        throw new IOException(path + " has version " + first.get(INT, 8) + " and kind " + first.get(INT, 12)
            + ", known are version " + VERSION + " and kind " + kind.id);
      }
      int data = first.get(INT, DATA);
      int text = first.get(INT, NAMES_BYTES);
      if (text < 0 || data % DATA_ALIGNMENT != 0 || NAMES + (long) text > data || data > size) {
        throw new IOException(path + " is damaged: names of " + text + " bytes, data at " + data + " of " + size);
      }
      return new ProcessFile(path, kind, channel.map(mode, 0, data, Arena.ofAuto()));
    }
  }

  /** Where it lies. */
  public Path path() {
    return path;
  }

  /** What the process that made it says about itself. */
  public String names() {
    return names;
  }

  /** The process that made it. */
  public long pid() {
    return header.get(LONG, PID);
  }

  /** Where the data begins. */
  public long dataOffset() {
    return header.get(INT, DATA);
  }

  /** Bytes of the file now. */
  public long size() throws IOException {
    return Files.size(path);
  }

  /**
   * Makes the file longer. The process that made it alone.
   *
   * @param bytes how many, a multiple of 64
   * @return zeroed memory of that size at the end of the file, aligned to 64 bytes
   */
  public MemorySegment append(long bytes) throws IOException {
    try (FileChannel channel = channel(path, MapMode.READ_WRITE)) {
      long at = channel.size();
      writeZeros(channel, bytes);
      return channel.map(MapMode.READ_WRITE, at, bytes, Arena.ofAuto());
    }
  }

  /** The data, as long as the file is now, to read. */
  public MemorySegment data() throws IOException {
    try (FileChannel channel = channel(path, MapMode.READ_ONLY)) {
      return channel.map(MapMode.READ_ONLY, dataOffset(), Math.max(0, channel.size() - dataOffset()), Arena.ofAuto());
    }
  }

  /** Says what time it is, on both clocks. The process that made it, about once a second, one thread. */
  public void tellTime() {
    long lock = header.get(LONG, CLOCK_LOCK);
    CELL.setRelease(header, (long) CLOCK_LOCK, lock + 1);
    VarHandle.storeStoreFence();
    header.set(LONG, NANOS, System.nanoTime());
    header.set(LONG, WALL, System.currentTimeMillis());
    CELL.setRelease(header, (long) CLOCK_LOCK, lock + 2);
  }

  /**
   * One moment on the clocks of the process that made the file.
   *
   * @param nanos {@link System#nanoTime} there
   * @param wallMillis milliseconds since 1970
   */
  public record Time(long nanos, long wallMillis) {
    /** Milliseconds since 1970 of another moment of that process. */
    public long wallMillis(long otherNanos) {
      return wallMillis + (otherNanos - nanos) / 1_000_000;
    }
  }

  /** The moment that was told last. */
  public Time time() {
    while (true) {
      long before = (long) CELL.getAcquire(header, (long) CLOCK_LOCK);
      Time time = new Time(header.get(LONG, NANOS), header.get(LONG, WALL));
      VarHandle.loadLoadFence();
      boolean whole = (before & 1) == 0 && before == (long) CELL.getAcquire(header, (long) CLOCK_LOCK);
      // A process that was killed in between leaves the lock odd; half a pair is better than none.
      if (whole || isStale()) {
        return time;
      }
      Thread.onSpinWait();
    }
  }

  /**
   * True if the process that made the file is gone: known for certain where both see the same processes, otherwise
   * taken from the time that it told last. A step of the clock changes when a process seems to have started, so one
   * that told the time of late is taken for the same.
   */
  public boolean isStale() {
    boolean silent = Math.abs(System.currentTimeMillis() - header.get(LONG, WALL)) > FRESH_MILLIS;
    if (isOfThisNamespace()) {
      return ProcessHandle.of(pid())
          .map(process -> !process.isAlive() || (silent && startedAtAnotherTime(process)))
          .orElse(true);
    }
    return silent;
  }

  private boolean startedAtAnotherTime(ProcessHandle process) {
    long start = startMillis(process);
    long known = header.get(LONG, START);
    return start != 0 && known != 0 && Math.abs(start - known) > START_TOLERANCE_MILLIS;
  }

  /** Which process made it, among all of the machine: pid and start, as in the file's name. */
  public String process() {
    return pid() + "-" + header.get(LONG, START);
  }

  /** Milliseconds since 1970 when it told the time last. */
  long toldMillis() {
    return header.get(LONG, WALL);
  }

  /** True where both see the same processes, so that {@link #isStale} is known for certain. */
  public boolean isOfThisNamespace() {
    long namespace = header.get(LONG, NAMESPACE);
    return namespace != 0 && namespace == pidNamespace();
  }

  /** True if the process that made the file has taken it away; who has opened it before still sees so. */
  public boolean isTakenAway() {
    return header.get(INT, END) != 0;
  }

  /** Takes the file away; memory that is mapped stays. The process that made it alone. Idempotent. */
  public void delete() throws IOException {
    header.set(INT, END, 1);
    Files.deleteIfExists(path);
  }

  @Override
  public String toString() {
    return kind + " of process " + pid() + ": " + path;
  }

  /** Opens what can be mapped: a pipe would be waited for. */
  private static FileChannel channel(Path path, MapMode mode) throws IOException {
    if (Files.exists(path) && !Files.isRegularFile(path)) {
      throw new IOException(path + " is no regular file");
    }
    return mode.equals(MapMode.READ_ONLY)
        ? FileChannel.open(path, StandardOpenOption.READ)
        : FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
  }

  private static void writeZeros(FileChannel channel, long bytes) throws IOException {
    ByteBuffer zeros = ByteBuffer.allocate((int) Math.min(bytes, ZEROS));
    long at = channel.size();
    for (long left = bytes; left > 0; ) {
      zeros.clear().limit((int) Math.min(left, ZEROS));
      int written = channel.write(zeros, at);
      at += written;
      left -= written;
    }
  }

  private static long startMillis(ProcessHandle process) {
    return process.info().startInstant().map(Instant::toEpochMilli).orElse(0L);
  }

  /** Number of the namespace in which this process has its pid; 0 if there is no such thing here. */
  private static long pidNamespace() {
    try {
      String link = Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString();
      return Long.parseLong(link.replaceAll("\\D", ""));
    } catch (IOException | NumberFormatException | UnsupportedOperationException e) {
      return 0;
    }
  }
}
