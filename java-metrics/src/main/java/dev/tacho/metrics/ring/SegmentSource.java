package dev.tacho.metrics.ring;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Where an {@link EventRing} gets its memory. Called by the thread that makes the ring and by its consumer, never by
 * its producer. Memory must be aligned to 64 bytes and stay valid while anything refers to the ring.
 */
@FunctionalInterface
public interface SegmentSource {
  /** Memory outside the heap that is freed when nothing refers to it any more. */
  SegmentSource OFF_HEAP = bytes -> Arena.ofAuto().allocate(bytes, 64);

  /**
   * Allocates.
   *
   * @param bytes how many
   * @return memory of that size, zeroed when it was new; null if there is none to be had: the ring goes on without
   */
  @Nullable MemorySegment allocate(long bytes);

  /**
   * Takes memory back that the ring needs no more. Does nothing unless told otherwise: the garbage collector frees it.
   *
   * @param memory what {@link #allocate} gave
   */
  default void release(MemorySegment memory) {}
}
