package dev.tacho.engine.simulation;

import dev.tacho.engine.scheduler.SchedulerListener;
import dev.tacho.engine.scheduler.Sequence;

/** Sums up what the scheduler reports. */
final class SimulationCounts implements SchedulerListener {
  final TimeHistogram queueTime = new TimeHistogram();
  long preemptions;
  long cachedTokens;

  @Override
  public void scheduled(Sequence sequence, long nanos) {
    if (sequence.numPreemptions() == 0) {
      queueTime.record(nanos - sequence.arrivalNanos());
    }
  }

  @Override
  public void preempted(Sequence sequence, long nanos) {
    preemptions++;
  }

  @Override
  public void prefixCacheQueried(Sequence sequence, int queryTokens, int hitTokens, boolean resumed) {
    if (!resumed) {
      cachedTokens += hitTokens;
    }
  }
}
