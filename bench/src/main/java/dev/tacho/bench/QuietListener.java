package dev.tacho.bench;

import dev.tacho.engine.scheduler.SchedulerListener;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.metrics.event.FinishReason;

/** Hears nothing, so that the scheduler alone is measured. */
final class QuietListener implements SchedulerListener {
  @Override
  public void queued(Sequence sequence, long nanos) {}

  @Override
  public void scheduled(Sequence sequence, long nanos) {}

  @Override
  public void preempted(Sequence sequence, long nanos) {}

  @Override
  public void prefixCacheQueried(Sequence sequence, int queryTokens, int hitTokens, boolean resumed) {}

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
