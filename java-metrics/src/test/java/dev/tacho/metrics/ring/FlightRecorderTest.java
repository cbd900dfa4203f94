package dev.tacho.metrics.ring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.page.ProcessFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a reader of a ring's file finds. */
class FlightRecorderTest {
  private static final int FIRST = 4096;

  @TempDir
  private Path directory;

  private long written;

  private ProcessFile.Filled<EventRing> ring(int maxBytes) throws IOException {
    return RingFile.create(directory, "engine 0 of m", FIRST, maxBytes);
  }

  private void write(EventRing ring, int records) {
    for (int i = 0; i < records; i++) {
      written++;
      CheckedRecords.write(ring, written, (int) (written % 5) + 1);
    }
    ring.publishRelease();
  }

  private static void drain(EventRing ring) {
    ring.prepareSpare();
    ring.drain(new CheckedRecords(), ring.tailAcquire());
  }

  private static CheckedRecords read(Path file) throws IOException {
    CheckedRecords records = new CheckedRecords();
    FlightRecorder.Recording recording = FlightRecorder.open(file).read(records);
    assertThat(recording.records()).isEqualTo(records.read);
    assertThat(records.torn).isZero();
    assertThat(records.disordered).isZero();
    assertThat(records.missing).isZero();
    return records;
  }

  @Test
  void whatWasPublishedSinceTheLastWrapIsThereThoughItWasRead() throws IOException {
    ProcessFile.Filled<EventRing> filled = ring(1 << 20);
    EventRing ring = filled.content();
    for (int round = 0; round < 500; round++) {
      write(ring, 17);
      drain(ring);
      CheckedRecords records = read(filled.file().path());
      assertThat(records.previous).isEqualTo(written);
      // Records have 24 bytes on average, and a lap holds up to 170 of them.
      assertThat(records.read).isBetween(1L, 200L);
    }
    assertThat(Files.size(filled.file().path())).as("two segments do").isLessThan(8 * FIRST);
  }

  @Test
  void nothingUnpublishedIsSeen() throws IOException {
    ProcessFile.Filled<EventRing> filled = ring(1 << 20);
    write(filled.content(), 3);
    CheckedRecords.write(filled.content(), 4, 2);
    assertThat(read(filled.file().path()).previous).isEqualTo(3);
  }

  @ParameterizedTest(name = "{0} records")
  @ValueSource(ints = {100, 1000, 3000})
  void whatNobodyReadIsThereThroughAllSegments(int records) throws IOException {
    ProcessFile.Filled<EventRing> filled = ring(1 << 20);
    EventRing ring = filled.content();
    for (int i = 0; i < records; i += 50) {
      write(ring, 50);
      ring.prepareSpare();
    }
    CheckedRecords found = read(filled.file().path());
    assertThat(found.first).isEqualTo(1);
    assertThat(found.previous).isEqualTo(records);
    drain(ring);
    write(ring, 1);
    assertThat(read(filled.file().path()).previous).isEqualTo(records + 1);
  }

  @Test
  void aSegmentThatWasLeftIsUsedAgainBeforeTheFileGrows() throws IOException {
    ProcessFile.Filled<EventRing> filled = ring(4 * FIRST);
    EventRing ring = filled.content();
    for (int round = 0; round < 100; round++) {
      for (int i = 0; i < 20; i++) {
        write(ring, 40);
      }
      drain(ring);
      assertThat(read(filled.file().path()).previous).isEqualTo(written);
    }
    assertThat(Files.size(filled.file().path())).isLessThan(16 * FIRST);
  }

  @Test
  void aReaderThatIsOvertakenReadsAgainAndGivesUpAfterAWhile() throws IOException {
    ProcessFile.Filled<EventRing> filled = ring(1 << 20);
    EventRing ring = filled.content();
    write(ring, 100);
    drain(ring);
    int[] overtaken = {3};
    Runnable lap = () -> {
      if (overtaken[0]-- > 0) {
        for (int i = 0; i < 4; i++) {
          write(ring, 60);
          drain(ring);
        }
      }
    };
    CheckedRecords records = new CheckedRecords();
    FlightRecorder.open(filled.file().path(), lap).read(records);
    assertThat(overtaken[0]).as("tried once more after three").isEqualTo(-1);
    assertThat(records.previous).isEqualTo(written);
    assertThat(records.torn + records.missing + records.disordered).isZero();
    overtaken[0] = Integer.MAX_VALUE;
    assertThatThrownBy(() -> FlightRecorder.open(filled.file().path(), lap).read(new CheckedRecords()))
        .isInstanceOf(IOException.class).hasMessageContaining("written faster than it can be read");
  }

  /** What is unread in the lap before may be written over once it was read, without another lap. */
  @Test
  void unreadRecordsThatAreReadDuringTheCopyAreNotTrusted() throws IOException {
    ProcessFile.Filled<EventRing> filled = ring(1 << 20);
    EventRing ring = filled.content();
    write(ring, 120);
    drain(ring);
    write(ring, 100);
    int[] times = {1};
    CheckedRecords records = new CheckedRecords();
    FlightRecorder.open(filled.file().path(), () -> {
      if (times[0]-- > 0) {
        drain(ring);
        write(ring, 40);
      }
    }).read(records);
    assertThat(records.previous).isEqualTo(260);
    assertThat(records.torn + records.missing + records.disordered).isZero();
  }

  @Test
  void aFileThatIsNoRingIsRefusedWithItsName() throws IOException {
    Path short1 = Files.writeString(directory.resolve("a.ring"), "x");
    assertThatThrownBy(() -> FlightRecorder.open(short1)).isInstanceOf(IOException.class).hasMessageContaining("a.ring")
        .hasMessageContaining("1 bytes");
    Path foreign = Files.write(directory.resolve("b.ring"), new byte[8192]);
    assertThatThrownBy(() -> FlightRecorder.open(foreign)).hasMessageContaining("b.ring")
        .hasMessageContaining("no file of ours");
    Path page = ProcessFile.create(directory, ProcessFile.Kind.PAGE, "", file -> file.append(64)).file().path();
    assertThatThrownBy(() -> FlightRecorder.open(page)).hasMessageContaining("kind 1")
        .hasMessageContaining("kind 2");
  }
}
