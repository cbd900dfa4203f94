package dev.tacho.metrics.event;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.ring.SegmentSource;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/** Writing allocates nothing: drained or not, growing, dropping, or off. */
class EventWriterAllocationTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final int STEPS = 20_000;
  private static final int RUNS = 5;
  private static final RequestId REQUEST_ID = RequestId.of("cmpl-0123456789abcdef");

  private final StepShape shape = new StepShape();

  @Test
  void nothingWithARingThatNobodyDrains() {
    EventRing ring = new EventRing(4096, 1 << 20, SegmentSource.OFF_HEAP);
    assertThat(allocated(EventWriter.into(ring))).isZero();
    assertThat(ring.lostRecords()).isPositive();
  }

  @Test
  void nothingWithARingThatGrows() {
    EventRing ring = new EventRing();
    assertThat(allocated(EventWriter.into(ring))).isZero();
    assertThat(ring.fullCount()).isPositive();
  }

  @Test
  void nothingWhenDisabled() {
    assertThat(allocated(EventWriter.disabled())).isZero();
  }

  /** The least of several runs: code that is compiled anew meanwhile may make an object once that it made none of. */
  private long allocated(EventWriter writer) {
    run(writer);
    run(writer);
    long least = Long.MAX_VALUE;
    for (int i = 0; i < RUNS && least > 0; i++) {
      long before = THREADS.getCurrentThreadAllocatedBytes();
      run(writer);
      least = Math.min(least, THREADS.getCurrentThreadAllocatedBytes() - before);
    }
    return least;
  }

  private void run(EventWriter writer) {
    for (int step = 1; step <= STEPS; step++) {
      shape.reset();
      writer.queued(step & 63, step >> 6, step, step, 10, 10, 0, 1, 0);
      writer.requestId(step & 63, step >> 6, REQUEST_ID);
      writer.scheduled(step & 63, step >> 6, step);
      for (int i = 0; i < 16; i++) {
        shape.add(false, 1, step);
      }
      writer.step(step, step, step, 16, shape);
      writer.prefillStats(step & 63, step >> 6, 10, 0, 0, 0);
      for (int i = 0; i < 16; i++) {
        writer.tokens(i, step, 1);
      }
      writer.draft(1, 1, 3, 2);
      writer.evicted(1, 1, 1, -1, -1);
      writer.details(step, 1, 1, 1, 1, 1);
      writer.finished(1, 1, FinishReason.STOP);
      writer.snapshot(1, 1, 1, 1, 1, 1, 1, 1);
      writer.preempted(1, 1, step);
      writer.pickUp(step, step);
      writer.stopped(1, 1);
      writer.ended(1, 1, FinishReason.ABORT);
      writer.commit();
    }
  }
}
