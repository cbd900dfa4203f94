package dev.tacho.metrics.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The bytes of a file that processes share, and how it comes and goes. */
class ProcessFileTest {
  @TempDir
  private Path directory;

  private List<Path> files() throws IOException {
    try (Stream<Path> found = Files.list(directory)) {
      return found.toList();
    }
  }

  @Test
  void theHeaderIsAsDrawnAndTheFileIsTheOwnersAlone() throws IOException {
    ProcessFile file = ProcessFile.create(directory, ProcessFile.Kind.PAGE, "model ü", f -> f.append(640)).file();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file.path()))).isEqualTo("rw-------");
    ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file.path())).order(ByteOrder.LITTLE_ENDIAN);
    assertThat(new String(bytes.array(), 0, 8, StandardCharsets.US_ASCII)).isEqualTo("TACHOFL1");
    assertThat(bytes.getInt(8)).isEqualTo(1);
    assertThat(bytes.getInt(12)).isEqualTo(1);
    assertThat(bytes.getLong(16)).isEqualTo(ProcessHandle.current().pid());
    assertThat(bytes.getLong(24))
        .isEqualTo(ProcessHandle.current().info().startInstant().orElseThrow().toEpochMilli());
    assertThat(bytes.getLong(40)).as("a whole clock pair").isEqualTo(2);
    assertThat(bytes.getInt(64)).isEqualTo(8);
    assertThat(bytes.getInt(68)).isEqualTo(4096);
    assertThat(new String(bytes.array(), 128, 8, StandardCharsets.UTF_8)).isEqualTo("model ü");
    assertThat(bytes.capacity()).isEqualTo(4096 + 640);
    assertThat(files()).as("no temporary file is left").containsExactly(file.path());
    file.delete();
    file.delete();
    assertThat(files()).isEmpty();
  }

  @Test
  void aFileIsNotSeenBeforeItIsFilledAndIsGoneIfItCannotBe() {
    assertThatThrownBy(() -> ProcessFile.create(directory, ProcessFile.Kind.PAGE, "", file -> {
      assertThat(files()).singleElement().asString().endsWith(".page.tmp");
      throw new IOException("No space left on device");
    })).isInstanceOf(IOException.class).hasMessageContaining(directory.toString())
        .hasMessageContaining("No space left on device");
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void readersSeeWhatIsWrittenAndTheTimeOfTheWriter() throws IOException {
    ProcessFile.Filled<MemorySegment> filled =
        ProcessFile.create(directory, ProcessFile.Kind.PAGE, "", file -> file.append(64));
    ProcessFile reader = ProcessFile.open(filled.file().path(), ProcessFile.Kind.PAGE);
    MemorySegment seen = reader.data();
    filled.content().set(ValueLayout.JAVA_LONG, 8, 42);
    assertThat(seen.get(ValueLayout.JAVA_LONG, 8)).isEqualTo(42);
    assertThatThrownBy(() -> seen.set(ValueLayout.JAVA_LONG, 8, 1)).as("who reads cannot write")
        .isInstanceOf(IllegalArgumentException.class);
    long before = System.nanoTime();
    filled.file().tellTime();
    ProcessFile.Time time = reader.time();
    assertThat(time.nanos()).isBetween(before, System.nanoTime());
    assertThat(time.wallMillis(time.nanos() + 3_000_000)).isEqualTo(time.wallMillis() + 3);
    assertThat(reader.isStale()).isFalse();
  }

  @Test
  void damageIsToldFromOtherFiles() throws IOException {
    Path path = ProcessFile.create(directory, ProcessFile.Kind.PAGE, "n", file -> file.append(64)).file().path();
    byte[] whole = Files.readAllBytes(path);
    byte[] newer = whole.clone();
    newer[8] = 9;
    Path other = Files.write(directory.resolve("newer.page"), newer);
    assertThatThrownBy(() -> ProcessFile.open(other, ProcessFile.Kind.PAGE)).hasMessageContaining("version 9");
    byte[] damaged = whole.clone();
    damaged[65] = 127;
    Files.write(other, damaged);
    assertThatThrownBy(() -> ProcessFile.open(other, ProcessFile.Kind.PAGE)).hasMessageContaining("damaged");
    Path folder = Files.createDirectory(directory.resolve("folder.page"));
    assertThatThrownBy(() -> ProcessFile.open(folder, ProcessFile.Kind.PAGE)).hasMessageContaining("no regular file");
  }

  /** The start of a process moves with the wall clock, so it decides only about one that has been silent. */
  @Test
  void aLiveProcessIsNotTakenForDeadWhenTheClockWasSet() throws IOException {
    Path path = ProcessFile.create(directory, ProcessFile.Kind.PAGE, "n", file -> file.append(64)).file().path();
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
      channel.write(longAt(1), 24);
      assertThat(ProcessFile.open(path, ProcessFile.Kind.PAGE).isStale()).as("it told the time just now").isFalse();
      channel.write(longAt(System.currentTimeMillis() - 3_600_000), 56);
    }
    assertThat(ProcessFile.open(path, ProcessFile.Kind.PAGE).isStale()).as("silent for an hour").isTrue();
  }

  /** A process that is killed while it makes a file leaves it with or without its header. */
  @Test
  void unfinishedFilesOfDeadProcessesAreReaped() throws IOException {
    FileTime longAgo = FileTime.fromMillis(System.currentTimeMillis() - FileReaper.REAP_MILLIS - 60_000);
    Path whole = ProcessFile.create(directory, ProcessFile.Kind.RING, "n", file -> file.append(64)).file().path();
    byte[] bytes = Files.readAllBytes(whole);
    Path ofLiving = Files.write(directory.resolve("tacho-1-1-1.ring.tmp"), bytes);
    Files.setLastModifiedTime(ofLiving, longAgo);
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putLong(16, Long.MAX_VALUE);
    Path ofDead = Files.write(directory.resolve("tacho-2-1-1.ring.tmp"), bytes);
    Path headless = Files.write(directory.resolve("tacho-3-1-1.page.tmp"), new byte[4096]);
    Path headlessLongAgo = Files.write(directory.resolve("tacho-4-1-1.page.tmp"), new byte[10]);
    Files.setLastModifiedTime(headlessLongAgo, longAgo);
    Path foreign = Files.write(directory.resolve("tacho-notes.txt.tmp"), new byte[10]);
    Files.setLastModifiedTime(foreign, longAgo);
    assertThat(FileReaper.reap(directory)).isEqualTo(2);
    assertThat(ofDead).doesNotExist();
    assertThat(headlessLongAgo).doesNotExist();
    assertThat(files()).containsExactlyInAnyOrder(whole, ofLiving, headless, foreign);
  }

  /** A ring or page as a dead process would have left it. */
  private Path ofDead(ProcessFile.Kind kind, String names, long pid, long toldMillis) throws IOException {
    Path path = ProcessFile.create(directory, kind, names, file -> file.append(64)).file().path();
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
      channel.write(longAt(pid), 16);
      channel.write(longAt(toldMillis), 56);
    }
    return path;
  }

  @Test
  void ringsOfTheLastDeadProcessOfEachEngineStay() throws IOException {
    long first = Long.MAX_VALUE - 1;
    long second = Long.MAX_VALUE;
    Path engineOfFirst = ofDead(ProcessFile.Kind.RING, "engine=0 ring=engine", first, 1000);
    Path outputOfFirst = ofDead(ProcessFile.Kind.RING, "engine=0 ring=output", first, 2001);
    Path otherOfFirst = ofDead(ProcessFile.Kind.RING, "engine=1 ring=engine", first, 1000);
    final Path page = ofDead(ProcessFile.Kind.PAGE, "engine=0", first, 1000);
    Path living = ProcessFile.create(directory, ProcessFile.Kind.RING, "engine=0 ring=engine", file -> file.append(64))
        .file().path();
    assertThat(FileReaper.reap(directory)).isEqualTo(1);
    assertThat(page).doesNotExist();
    // It told the time in one ring before the first did in its other one, but it lived longer.
    Path engineOfSecond = ofDead(ProcessFile.Kind.RING, "engine=0 ring=engine", second, 3000);
    Path outputOfSecond = ofDead(ProcessFile.Kind.RING, "engine=0 ring=output", second, 2000);
    assertThat(FileReaper.reap(directory)).isEqualTo(2);
    assertThat(engineOfFirst).doesNotExist();
    assertThat(outputOfFirst).doesNotExist();
    assertThat(files()).containsExactlyInAnyOrder(engineOfSecond, outputOfSecond, otherOfFirst, living);
    assertThat(FileReaper.reap(directory)).as("once more").isZero();
  }

  private static ByteBuffer longAt(long value) {
    return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, value);
  }
}
