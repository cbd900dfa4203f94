package dev.tacho.metrics.event;

import dev.tacho.metrics.ring.EventRing;
import java.lang.foreign.MemorySegment;

/**
 * A step of one decode that is not in the ring yet: if the next record is its one token, both make one short record.
 * Of the writer's thread.
 */
final class HeldStep {
  private boolean held;
  private long step;
  private long batchNanos;
  private int ageNanos;
  private int context;

  /** True if there is one. */
  boolean isHeld() {
    return held;
  }

  /**
   * Holds a step, if it may become a short record.
   *
   * @return false if it may not: it is to be written as it is
   */
  boolean hold(long number, long builtNanos, long scheduleNanos, int outputs, StepShape shape) {
    long age = builtNanos - scheduleNanos;
    held = outputs == 1 && shape.isOneDecode() && age == (int) age && shape.decodeContext() <= Integer.MAX_VALUE;
    step = number;
    batchNanos = builtNanos;
    ageNanos = (int) age;
    context = (int) shape.decodeContext();
    return held;
  }

  /** True if this word is all that the step's output is: one token. */
  static boolean isCompletedBy(long word) {
    return EventDescriptor.typeId(word) == EventType.TOKENS.id() && EventDescriptor.argument(word) == 1;
  }

  /** Writes a STEP_OF_ONE with its token's word, if there is room; holds it no more. */
  void writeWithToken(EventRing to, long tokens) {
    held = false;
    long at = to.claim(EventDescriptor.STEP_OF_ONE_BYTES, 1);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      memory.set(EventDescriptor.LONG, at, tokens - EventType.TOKENS.id() + EventType.STEP_OF_ONE.id());
      memory.set(EventDescriptor.LONG, at + EventDescriptor.FIRST, step);
      memory.set(EventDescriptor.LONG, at + EventDescriptor.STEP_BATCH, batchNanos);
      memory.set(EventDescriptor.INT, at + EventDescriptor.STEP_OF_ONE_AGE, ageNanos);
      memory.set(EventDescriptor.INT, at + EventDescriptor.STEP_OF_ONE_CONTEXT, context);
    }
  }

  /** Writes a STEP, as something else than one token follows, if there is room; holds it no more. */
  void writeAlone(EventRing to) {
    held = false;
    long at = to.claim(EventDescriptor.STEP_BYTES, 1);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      memory.set(EventDescriptor.LONG, at, EventDescriptor.word(EventType.STEP, 0, 1, 0));
      memory.set(EventDescriptor.LONG, at + EventDescriptor.FIRST, step);
      memory.set(EventDescriptor.LONG, at + EventDescriptor.STEP_BATCH, batchNanos);
      memory.set(EventDescriptor.LONG, at + EventDescriptor.STEP_SCHEDULE, batchNanos - ageNanos);
      memory.set(EventDescriptor.LONG, at + EventDescriptor.STEP_DECODE_TOKENS, 1L);
      memory.set(EventDescriptor.LONG, at + EventDescriptor.STEP_DECODE_CONTEXT, (long) context);
    }
  }
}
