package dev.tacho.metrics.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.StressTime;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A producer and a consumer on two threads: every record is read once, in order and whole, or counted as lost, while
 * the ring wraps, grows and drops; in memory of this process or in a file that a third thread reads like a stranger.
 */
class EventRingStressTest {
  private static final int CASES = 7;
  private static final double SHARE = 0.7 / CASES;
  private static final int MIN_RECORDS = 100_000;

  @TempDir
  private Path directory;

  @ParameterizedTest(name = "seed {0}, first {1}, limit {2}, consumer reads one round in {3}, in a file: {4}")
  @CsvSource({"1, 1048576, 67108864, 1, false", "2, 4096, 1048576, 1, false", "3, 4096, 12288, 1, false",
      "4, 4096, 65536, 50, false", "5, 16384, 262144, 1000, false", "6, 4096, 65536, 1, true",
      "7, 65536, 4194304, 20, true"})
  @Timeout(600)
  void everyRecordIsReadWholeOrCountedAsLost(long seed, int first, int limit, int oneRoundIn, boolean inFile)
      throws Exception {
    var file = inFile ? RingFile.create(directory, "stress", first, limit) : null;
    EventRing ring = file != null ? file.content() : new EventRing(first, limit, SegmentSource.OFF_HEAP);
    AtomicLong written = new AtomicLong();
    long end = StressTime.end(SHARE);
    Thread producer = Thread.ofPlatform().start(() -> {
      Random random = new Random(seed);
      long number = 0;
      while (number < MIN_RECORDS || number % 1024 != 0 || !StressTime.isOver(end)) {
        CheckedRecords.write(ring, ++number, random.nextInt(1, 8));
        if (random.nextInt(16) == 0) {
          ring.publishRelease();
        }
      }
      ring.publishRelease();
      written.set(number);
    });
    Thread stranger = null;
    CheckedRecords seen = new CheckedRecords();
    AtomicLong copies = new AtomicLong();
    if (file != null) {
      FlightRecorder recorder = FlightRecorder.open(file.file().path());
      stranger = Thread.ofPlatform().start(() -> {
        while (producer.isAlive()) {
          try {
            CheckedRecords copy = new CheckedRecords();
            recorder.read(copy);
            copies.incrementAndGet();
            seen.torn += copy.torn;
            seen.disordered += copy.disordered;
          } catch (java.io.IOException e) {
            // Overtaken a hundred times: the producer writes far faster here than any engine does.
          }
        }
      });
    }
    CheckedRecords checker = new CheckedRecords();
    Random random = new Random(~seed);
    boolean last;
    do {
      last = !producer.isAlive();
      if (last || random.nextInt(oneRoundIn) == 0) {
        ring.prepareSpare();
        ring.drain(checker, ring.tailAcquire());
      }
    } while (!last);
    assertThat(checker.torn).isZero();
    assertThat(checker.disordered).isZero();
    assertThat(checker.missing).isLessThanOrEqualTo(ring.lostRecords());
    assertThat(checker.read + ring.lostRecords()).isEqualTo(written.get());
    if (stranger != null) {
      stranger.join();
      assertThat(seen.torn).as("in %d copies", copies.get()).isZero();
      assertThat(seen.disordered).isZero();
    }
  }
}
