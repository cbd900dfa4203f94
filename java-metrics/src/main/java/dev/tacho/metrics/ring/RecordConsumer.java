package dev.tacho.metrics.ring;

import java.lang.foreign.MemorySegment;

/** Takes the records of an {@link EventRing} one after another, on the thread that drains it. */
@FunctionalInterface
public interface RecordConsumer {
  /** What {@link #consume} returns to have the record, and all after it, kept for the next drain. */
  int NOT_YET = 0;

  /**
   * Reads one record.
   *
   * @param memory the ring's memory; not to be kept
   * @param offset where the record begins, in bytes
   * @return the length of the record in bytes, a positive multiple of 8, or {@link #NOT_YET}
   */
  int consume(MemorySegment memory, long offset);
}
