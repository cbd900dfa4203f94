package dev.tacho.metrics.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.page.ProcessFile;
import java.io.BufferedReader;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A process that writes a million records a second is killed; its ring is read afterwards. */
class KilledWriterTest {
  private static final int FIRST_BYTES = 1 << 20;

  @TempDir
  private Path directory;

  @ParameterizedTest(name = "killed after {0} ms")
  @ValueSource(ints = {300, 700, 1100})
  @Timeout(60)
  void everyRecordSinceTheLastWrapIsThereAndWhole(int millis) throws Exception {
    Process child = new ProcessBuilder(
        ProcessHandle.current().info().command().orElseThrow(), "-cp", System.getProperty("java.class.path"),
        Writer.class.getName(), directory.toString()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    try (BufferedReader out = child.inputReader()) {
      Path ring = Path.of(out.readLine());
      ProcessFile told = ProcessFile.open(Path.of(out.readLine()), ProcessFile.Kind.PAGE);
      assertThat(told.isStale()).isFalse();
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
      assertThat(child.toHandle().destroyForcibly()).isTrue();
      assertThat(child.waitFor()).as("killed").isEqualTo(128 + 9);
      long published = told.data().get(ValueLayout.JAVA_LONG, 0);
      assertThat(published).as("it wrote").isGreaterThan(20_000);
      FlightRecorder recorder = FlightRecorder.open(ring);
      assertThat(recorder.file().isStale()).isTrue();
      assertThat(recorder.file().pid()).isEqualTo(child.pid());
      CheckedRecords records = new CheckedRecords();
      FlightRecorder.Recording recording = recorder.read(records);
      assertThat(records.torn).isZero();
      assertThat(records.missing + records.disordered).isZero();
      assertThat(records.previous).as("no published record is missing at the end").isGreaterThanOrEqualTo(published);
      assertThat(recording.end() - recording.begin()).isLessThanOrEqualTo(2L * FIRST_BYTES);
      assertThat(recording.lost()).isZero();
    }
  }

  /** The child: writes at its pace, drains now and then, says what it has published. */
  static final class Writer {
    private static final int BATCH = 1000;

    private Writer() {}

    public static void main(String[] args) throws Exception {
      Path directory = Path.of(args[0]);
      ProcessFile.Filled<EventRing> filled = RingFile.create(directory, "killed", FIRST_BYTES, 64 << 20);
      var told = ProcessFile.create(directory, ProcessFile.Kind.PAGE, "told", file -> file.append(64));
      EventRing ring = filled.content();
      System.out.println(filled.file().path());
      System.out.println(told.file().path());
      long begin = System.nanoTime();
      long number = 0;
      // A parent that is gone does not kill.
      while (System.nanoTime() - begin < TimeUnit.SECONDS.toNanos(60)) {
        for (int i = 0; i < BATCH; i++) {
          number++;
          CheckedRecords.write(ring, number, (int) (number % 7) + 1);
          if (number % 10 == 0) {
            ring.publishRelease();
            told.content().set(ValueLayout.JAVA_LONG, 0, number);
          }
        }
        ring.prepareSpare();
        ring.drain(new CheckedRecords(), ring.tailAcquire());
        // A thousand nanoseconds a record.
        while (System.nanoTime() - begin < number * 1000) {
          Thread.onSpinWait();
        }
      }
    }
  }
}
