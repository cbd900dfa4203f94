package dev.tacho.metrics.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Numbered records whose words follow from their number, so that a lost or torn one is seen. */
final class CheckedRecords implements RecordConsumer {
  private static final ValueLayout.OfLong WORD = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);

  long read;
  long first;
  long previous;
  long torn;
  long disordered;
  long missing;

  /** Writes a record if there is room for it. */
  static void write(EventRing ring, long number, int words) {
    long at = ring.claim(words * 8, 1);
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

  @Override
  public int consume(MemorySegment memory, long offset) {
    long word = memory.get(WORD, offset);
    long number = word >>> 8;
    int words = (int) word & 0xFF;
    if (read == 0) {
      first = number;
    } else if (number <= previous) {
      disordered++;
    } else {
      missing += number - previous - 1;
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
