package dev.tacho.metrics.ring;

import java.lang.foreign.MemorySegment;

/** Takes the records of an {@link EventRing} one after another, on the thread that drains it. */
@FunctionalInterface
public interface RecordConsumer {
  /**
   * Reads one record.
   *
   * @param memory the ring's memory; not to be kept
   * @param offset where the record begins, in bytes
   * @return the length of the record in bytes, a positive multiple of 8
   */
  int consume(MemorySegment memory, long offset);
}
