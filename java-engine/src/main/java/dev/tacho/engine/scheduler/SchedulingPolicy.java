package dev.tacho.engine.scheduler;

import org.jspecify.annotations.Nullable;

/** Who is admitted first and who gives way when KV blocks run out. */
public enum SchedulingPolicy {
  /** First come, first served; the one admitted last gives way. */
  FCFS {
    @Override
    WaitingQueue newQueue() {
      return new FcfsQueue();
    }

    @Override
    @Nullable Sequence victim(SequenceList running) {
      return running.last();
    }
  },
  /** The smallest priority number first, then arrival; the largest number, then the youngest, gives way. */
  PRIORITY {
    @Override
    WaitingQueue newQueue() {
      return new PriorityHeap();
    }

    @Override
    @Nullable Sequence victim(SequenceList running) {
      Sequence victim = running.first();
      for (Sequence s = victim; s != null && victim != null; s = s.next) {
        if (PriorityHeap.compareUrgency(s, victim) > 0) {
          victim = s;
        }
      }
      return victim;
    }
  };

  abstract WaitingQueue newQueue();

  /** Who loses its blocks; null if nothing runs. */
  abstract @Nullable Sequence victim(SequenceList running);
}
