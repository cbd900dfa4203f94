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
    @Nullable Sequence victim(RunningSequences running) {
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
    @Nullable Sequence victim(RunningSequences running) {
      Sequence victim = null;
      for (int i = 0; i < running.end(); i++) {
        SequenceProgress progress = running.at(i);
        Sequence s = progress == null ? null : progress.sequence;
        if (s != null && (victim == null || PriorityHeap.compareUrgency(s, victim) > 0)) {
          victim = s;
        }
      }
      return victim;
    }
  };

  abstract WaitingQueue newQueue();

  /** Who loses its blocks; null if nothing runs. */
  abstract @Nullable Sequence victim(RunningSequences running);
}
