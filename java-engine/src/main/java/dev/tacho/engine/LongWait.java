package dev.tacho.engine;

import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.SequenceState;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Says why requests wait, when one of them has waited long. Engine thread, between two steps. */
final class LongWait {
  private LongWait() {}

  /**
   * A line about the one that has waited longest since it was last put into the queue; null if that is not long.
   *
   * @param scheduler of the engine
   * @param nanos now
   * @param limit what counts as long
   */
  static @Nullable String describe(Scheduler scheduler, long nanos, Duration limit) {
    Sequence longest = scheduler.longestWaiting();
    if (longest == null || nanos - longest.waitingSinceNanos() < limit.toNanos()) {
      return null;
    }
    int deferred = scheduler.numDeferred();
    return "Running: "
        + scheduler.numRunning()
        + ", Waiting: "
        + (scheduler.numWaiting() + deferred)
        + (deferred == 0 ? "" : " (" + deferred + " deferred)")
        + ". Request "
        + longest.requestId()
        + placeAndReason(scheduler, longest, waited(longest, nanos));
  }

  private static String waited(Sequence sequence, long nanos) {
    String now = " has waited " + seconds(nanos - sequence.waitingSinceNanos());
    int preemptions = sequence.numPreemptions();
    return preemptions == 0
        ? now
        : now
            + " ("
            + seconds(sequence.waitedNanos(nanos))
            + " altogether, preempted "
            + (preemptions == 1 ? "once)" : preemptions + " times)");
  }

  /** What keeps it from being admitted; if it stands behind another, what keeps that one. */
  private static String placeAndReason(Scheduler scheduler, Sequence sequence, String waited) {
    List<Sequence> queue = scheduler.waiting();
    int position = queue.indexOf(sequence) + 1;
    int first = 0;
    while (first < position - 1 && queue.get(first).state() == SequenceState.BLOCKED) {
      first++;
    }
    if (first == position - 1 || sequence.state() == SequenceState.BLOCKED) {
      return (position == 1 ? ", the first in the queue," : "")
          + waited
          + ": "
          + RequestExplainer.whyWaiting(scheduler, sequence, 1);
    }
    Sequence ahead = queue.get(first);
    return waited
        + " behind "
        + (position - 1)
        + " in the queue, first of them request "
        + ahead.requestId()
        + ": "
        + RequestExplainer.whyWaiting(scheduler, ahead, 1);
  }

  private static String seconds(long nanos) {
    return TimeUnit.NANOSECONDS.toSeconds(nanos) + " s";
  }
}
