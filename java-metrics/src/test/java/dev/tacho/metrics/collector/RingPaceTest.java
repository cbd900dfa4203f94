package dev.tacho.metrics.collector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.ring.SegmentSource;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;

class RingPaceTest {
  private static final int SEQUENCES = 256;
  private static final int STEPS_A_SECOND = 2_500;
  private static final long STEP_NANOS = 1_000_000_000 / STEPS_A_SECOND;

  private final EventRing ring = new EventRing();
  private final EventWriter engine = EventWriter.into(ring);
  private final RingPace pace = new RingPace(ring, 0);
  private final StepShape shape = new StepShape();
  private int steps;

  private void steps(long count) {
    for (long i = 0; i < count; i++) {
      steps++;
      engine.step(steps, steps * STEP_NANOS, (steps - 1) * STEP_NANOS, SEQUENCES, shape);
      for (int slot = 0; slot < SEQUENCES; slot++) {
        engine.tokens(slot, 0, 1);
      }
      engine.snapshot(SEQUENCES, 0, 0, 1, 1, 0, 0, 0);
      engine.commit();
    }
  }

  private void read() {
    ring.discard(ring.tailAcquire());
  }

  @Test
  void aRingInWhichLittleIsWrittenRestsLong() {
    assertThat(pace.restNanos(7)).as("nothing").isEqualTo(RingPace.LONGEST_NANOS);
    steps(1);
    assertThat(pace.restNanos(17_000_007)).as("a step in 17 ms").isEqualTo(RingPace.LONGEST_NANOS);
  }

  @Test
  void theFastestEngineFillsHalfOfARingWhenItBeginsAndAQuarterFromThenOn() {
    long now = 0;
    long rest = pace.restNanos(now);
    for (int turn = 0; turn < 4; turn++) {
      long begin = ring.tailAcquire();
      steps(rest / STEP_NANOS);
      now += rest;
      double filled = (double) (ring.tailAcquire() - begin) / EventRing.DEFAULT_FIRST_BYTES;
      assertThat(filled).as("turn " + turn).isCloseTo(turn == 0 ? 0.5 : 0.25, Percentage.withPercentage(3));
      // Whoever else reads changes nothing.
      read();
      rest = pace.restNanos(now);
    }
    assertThat(ring.fullCount()).isZero();
    assertThat(ring.lostRecords()).isZero();
  }

  @Test
  void aRestIsNeverTooShortNorTooLongAndPassesWithTheRate() {
    steps(400);
    assertThat(pace.restNanos(1)).isEqualTo(RingPace.SHORTEST_NANOS);
    read();
    steps(64);
    assertThat(pace.restNanos(25_000_001)).isCloseTo(48_000_000L, Percentage.withPercentage(2));
    steps(1);
    assertThat(pace.restNanos(25_000_001)).as("no time passed").isEqualTo(RingPace.SHORTEST_NANOS);
    assertThat(pace.restNanos(73_000_001)).as("nothing written").isEqualTo(RingPace.LONGEST_NANOS);
  }

  @Test
  void whatIsLeftUnreadShortensTheRest() {
    steps(240);
    assertThat(pace.restNanos(10_000_000_000L)).as("511 thousand bytes").isEqualTo(RingPace.LONGEST_NANOS);
    steps(10);
    assertThat(pace.restNanos(20_000_000_000L)).as("532 thousand bytes").isEqualTo(RingPace.SHORTEST_NANOS);
    read();
    assertThat(pace.restNanos(30_000_000_000L)).isEqualTo(RingPace.LONGEST_NANOS);
  }

  @Test
  void aSmallRingRestsLessThanALargeOne() {
    EventRing small = new EventRing(1 << 16, EventRing.DEFAULT_MAX_BYTES, SegmentSource.OFF_HEAP);
    EventWriter output = EventWriter.into(small);
    RingPace ofSmall = new RingPace(small, 0);
    for (int step = 1; step <= 1_000; step++) {
      output.pickUp(step, step);
    }
    output.commit();
    assertThat(ofSmall.restNanos(50_000_000)).as("a quarter of 64 KiB at 24,000 bytes in 50 ms")
        .isEqualTo(50_000_000L * (1 << 14) / 24_000);
  }
}
