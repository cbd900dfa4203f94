package dev.tacho.metrics.event;

import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.ring.SegmentSource;

/**
 * What writing an event costs on this machine, found once in this process by writing some and taking the time. Writers
 * read no clock of their own, so this is how their cost is known. Any thread.
 */
public final class RecordCost {
  private static final int RING_BYTES = 1 << 16;
  private static final int ROUNDS = 64;
  private static final int EVENTS = 1024;

  private RecordCost() {}

  /** Seconds that a thread spends on writing one event; the best of some rounds. Takes a few milliseconds once. */
  public static double secondsPerEvent() {
    return Trial.SECONDS;
  }

  /** Made when first asked for. */
  private static final class Trial {
    static final double SECONDS = measure();

    private static double measure() {
      EventRing ring = new EventRing(RING_BYTES, 3 * RING_BYTES, SegmentSource.OFF_HEAP);
      EventWriter writer = EventWriter.into(ring);
      long best = Long.MAX_VALUE;
      for (int round = 0; round < ROUNDS; round++) {
        long begin = System.nanoTime();
        for (int i = 0; i < EVENTS; i++) {
          writer.tokens(i, round, 1);
        }
        writer.commit();
        best = Math.min(best, System.nanoTime() - begin);
        ring.discard(ring.tailAcquire());
      }
      return Math.max(1, best) / (1e9 * EVENTS);
    }
  }
}
