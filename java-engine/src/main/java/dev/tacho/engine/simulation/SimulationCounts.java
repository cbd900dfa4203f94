package dev.tacho.engine.simulation;

import dev.tacho.engine.scheduler.SchedulerListener;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.metrics.event.FinishReason;

/** Sums up what the scheduler reports. */
final class SimulationCounts implements SchedulerListener {
  final TimeHistogram queueTime = new TimeHistogram();
  long preemptions;
  long cachedTokens;

  @Override
  public void queued(Sequence sequence, long nanos) {}

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

  @Override
  public void prefixCacheReset() {}

  @Override
  public void outputsBegin(StepPlan plan, long batchNanos) {}

  @Override
  public void prefillStats(Sequence sequence, int prompt, int localCached, int externalCached, int created) {}

  @Override
  public void tokens(Sequence sequence, int count) {}

  @Override
  public void finished(Sequence sequence, FinishReason reason, long nanos) {}

  @Override
  public void outputsEnd() {}
}
