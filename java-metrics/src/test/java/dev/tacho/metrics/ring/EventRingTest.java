package dev.tacho.metrics.ring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventRingTest {
  private static final ValueLayout.OfLong WORD = ValueLayout.JAVA_LONG;

  @Test
  void nothingIsSeenBeforeItIsPublished() {
    EventRing ring = new EventRing();
    write(ring, 1);
    assertThat(drain(ring)).isEmpty();
    write(ring, 2);
    ring.publishRelease();
    assertThat(drain(ring)).containsExactly(1L, 2L);
    assertThat(drain(ring)).isEmpty();
  }

  @Test
  void drainStopsAtAnEarlierTail() {
    EventRing ring = new EventRing();
    write(ring, 1);
    ring.publishRelease();
    long tail = ring.tailAcquire();
    write(ring, 2);
    ring.publishRelease();
    List<Long> first = new ArrayList<>();
    assertThat(ring.drain(into(first), tail)).isEqualTo(1);
    assertThat(first).containsExactly(1L);
    assertThat(drain(ring)).containsExactly(2L);
  }

  @Test
  void aDrainedRingCyclesInItsFirstSegment() {
    EventRing ring = new EventRing(4096, 3 * 4096, SegmentSource.OFF_HEAP);
    for (long i = 1; i <= 100_000; i++) {
      write(ring, i);
      ring.publishRelease();
      assertThat(drain(ring)).containsExactly(i);
    }
    assertThat(ring.fullCount()).isZero();
    assertThat(ring.lostRecords()).isZero();
  }

  @Test
  void aFullSegmentGoesOnInTheSpareAndNothingIsLost() {
    EventRing ring = new EventRing(4096, 1 << 20, SegmentSource.OFF_HEAP);
    long written = 0;
    for (int round = 0; round < 4; round++) {
      for (int i = 0; i < 400; i++) {
        write(ring, ++written);
      }
      ring.prepareSpare();
    }
    ring.publishRelease();
    List<Long> read = drain(ring);
    assertThat(read).hasSize(1600).isSorted().startsWith(1L).endsWith(1600L);
    assertThat(ring.fullCount()).isPositive();
    assertThat(ring.lostRecords()).isZero();
  }

  @Test
  void withoutAConsumerTheOldestSegmentIsDroppedAndCounted() {
    EventRing ring = new EventRing(4096, 3 * 4096, SegmentSource.OFF_HEAP);
    int written = 100_000;
    for (int i = 1; i <= written; i++) {
      write(ring, i);
    }
    ring.publishRelease();
    List<Long> read = drain(ring);
    assertThat(read).isNotEmpty().isSorted().endsWith((long) written);
    assertThat(read.size() + ring.lostRecords()).isEqualTo(written);
    assertThat(read.get(0)).as("what was lost is the oldest").isEqualTo(written - read.size() + 1L);
  }

  @Test
  void aFailedRecordStaysUntilItIsDiscarded() {
    EventRing ring = new EventRing();
    for (long i = 1; i <= 3; i++) {
      write(ring, i);
    }
    ring.publishRelease();
    List<Long> read = new ArrayList<>();
    RecordConsumer failing = (memory, offset) -> {
      if (memory.get(WORD, offset) == 2) {
        throw new IllegalStateException("2");
      }
      return into(read).consume(memory, offset);
    };
    assertThatThrownBy(() -> ring.drain(failing, ring.tailAcquire())).hasMessage("2");
    assertThat(read).containsExactly(1L);
    ring.discard(ring.tailAcquire());
    assertThat(drain(ring)).isEmpty();
    write(ring, 4);
    ring.publishRelease();
    assertThat(drain(ring)).containsExactly(4L);
  }

  @Test
  void sizesAreChecked() {
    assertThatThrownBy(() -> new EventRing(5000, 1 << 20, SegmentSource.OFF_HEAP)).hasMessageContaining("5000");
    assertThatThrownBy(() -> new EventRing(4096, 8192, SegmentSource.OFF_HEAP)).hasMessageContaining("8192");
  }

  /** Records of one to four words, so that they meet the end of a segment in every way. */
  private static void write(EventRing ring, long value) {
    int words = (int) (value % 4) + 1;
    long at = ring.claim(words * 8, 1);
    if (at >= 0) {
      for (int i = 0; i < words; i++) {
        ring.memory().set(WORD, at + 8L * i, value);
      }
    }
  }

  private static List<Long> drain(EventRing ring) {
    List<Long> read = new ArrayList<>();
    ring.drain(into(read), ring.tailAcquire());
    return read;
  }

  private static RecordConsumer into(List<Long> read) {
    return (memory, offset) -> {
      long value = memory.get(WORD, offset);
      int words = (int) (value % 4) + 1;
      for (int i = 1; i < words; i++) {
        assertThat(memory.get(WORD, offset + 8L * i)).isEqualTo(value);
      }
      read.add(value);
      return words * 8;
    };
  }
}
