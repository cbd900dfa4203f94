package dev.tacho.metrics.ring;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Where an {@link EventRing} gets its memory. Called by the thread that makes the ring and by its consumer, never by
 * its producer. Memory must be zero, aligned to 64 bytes and stay valid while anything refers to the ring.
 */
@FunctionalInterface
public interface SegmentSource {
  /** Memory outside the heap that is freed when nothing refers to it any more. */
  SegmentSource OFF_HEAP = bytes -> Arena.ofAuto().allocate(bytes, 64);

  /**
   * Allocates.
   *
   * @param bytes how many
   * @return zeroed memory of that size
   */
  MemorySegment allocate(long bytes);
}
