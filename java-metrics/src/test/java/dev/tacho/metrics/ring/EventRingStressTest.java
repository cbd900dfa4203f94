package dev.tacho.metrics.ring;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A producer and a consumer on two threads: every record is read once, in order and whole, or counted as lost, while
 * the ring wraps, grows and drops.
 */
class EventRingStressTest {
  private static final ValueLayout.OfLong WORD = ValueLayout.JAVA_LONG;
  private static final int RECORDS = 4_000_000;

  @ParameterizedTest(name = "seed {0}, first {1}, limit {2}, consumer reads one round in {3}")
  @CsvSource({"1, 1048576, 67108864, 1", "2, 4096, 1048576, 1", "3, 4096, 12288, 1", "4, 4096, 65536, 50",
      "5, 16384, 262144, 1000"})
  @Timeout(120)
  void everyRecordIsReadWholeOrCountedAsLost(long seed, int first, int limit, int oneRoundIn)
      throws InterruptedException {
    EventRing ring = new EventRing(first, limit, SegmentSource.OFF_HEAP);
    AtomicBoolean done = new AtomicBoolean();
    Thread producer = new Thread(() -> {
      Random random = new Random(seed);
      for (long i = 1; i <= RECORDS; i++) {
        write(ring, i, random.nextInt(1, 8));
        if (random.nextInt(16) == 0) {
          ring.publishRelease();
        }
      }
      ring.publishRelease();
      done.set(true);
    });
    producer.start();
    Checker checker = new Checker();
    Random random = new Random(~seed);
    boolean last;
    do {
      last = done.get();
      if (last || random.nextInt(oneRoundIn) == 0) {
        ring.prepareSpare();
        ring.drain(checker, ring.tailAcquire());
      }
    } while (!last);
    producer.join();
    assertThat(checker.torn).isZero();
    assertThat(checker.disordered).isZero();
    assertThat(checker.read + ring.lostRecords()).isEqualTo(RECORDS);
  }

  private static void write(EventRing ring, long number, int words) {
    long at = ring.claim(words * 8);
    if (at >= 0) {
      MemorySegment memory = ring.memory();
      memory.set(WORD, at, number << 8 | words);
      for (int i = 1; i < words; i++) {
        memory.set(WORD, at + 8L * i, mix(number, i));
      }
    }
  }

  private static long mix(long number, int index) {
    return (number * 31 + index) * 0x9E3779B97F4A7C15L;
  }

  /** Checks order and every word. */
  private static final class Checker implements RecordConsumer {
    long read;
    long previous;
    long torn;
    long disordered;

    @Override
    public int consume(MemorySegment memory, long offset) {
      long word = memory.get(WORD, offset);
      long number = word >>> 8;
      int words = (int) word & 0xFF;
      if (number <= previous) {
        disordered++;
      }
      for (int i = 1; i < words; i++) {
        if (memory.get(WORD, offset + 8L * i) != mix(number, i)) {
          torn++;
        }
      }
      previous = number;
      read++;
      return words * 8;
    }
  }
}
