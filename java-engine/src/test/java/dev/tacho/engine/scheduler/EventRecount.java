package dev.tacho.engine.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.event.FinishReason;
import java.util.HashMap;
import java.util.Map;

/**
 * Recounts everything from the stream of events alone, and holds each event to what may follow the one before it. What
 * the scheduler says of itself must be the same at any time.
 */
final class EventRecount extends RecordingListener {
  private final Map<Sequence, SequenceState> states = new HashMap<>();
  private final Map<Sequence, Integer> tokensOf = new HashMap<>();
  private int running;
  private int waiting;
  private boolean inOutputs;
  private long lastNanos = Long.MIN_VALUE;

  /** Compares with what the scheduler says. */
  void check(Scheduler scheduler) {
    assertThat(scheduler.numRunning()).as("running").isEqualTo(running);
    assertThat(scheduler.numWaiting() + scheduler.numDeferred()).as("waiting").isEqualTo(waiting);
    assertThat(scheduler.hasUnfinished()).isEqualTo(running + waiting > 0);
    assertThat(hits).isLessThanOrEqualTo(queries);
    assertThat(hits % scheduler.pool().blockTokens()).isZero();
  }

  /** Output tokens of a sequence. */
  int tokensOf(Sequence s) {
    return tokensOf.getOrDefault(s, 0);
  }

  private void move(Sequence s, SequenceState from, SequenceState to) {
    assertThat(states.put(s, to)).as(s + " becomes " + to).isEqualTo(from);
    running += (to == SequenceState.RUNNING ? 1 : 0) - (from == SequenceState.RUNNING ? 1 : 0);
    waiting += (isWaiting(to) ? 1 : 0) - (isWaiting(from) ? 1 : 0);
  }

  private static boolean isWaiting(SequenceState state) {
    return state == SequenceState.WAITING || state == SequenceState.PREEMPTED;
  }

  private void at(long nanos) {
    assertThat(nanos).as("time").isGreaterThanOrEqualTo(lastNanos);
    lastNanos = nanos;
  }

  @Override
  public void queued(Sequence s, long nanos) {
    at(nanos);
    assertThat(states.put(s, SequenceState.WAITING)).isNull();
    waiting++;
    super.queued(s, nanos);
  }

  @Override
  public void scheduled(Sequence s, long nanos) {
    at(nanos);
    boolean again = s.numPreemptions() > 0;
    move(s, again ? SequenceState.PREEMPTED : SequenceState.WAITING, SequenceState.RUNNING);
    super.scheduled(s, nanos);
  }

  @Override
  public void preempted(Sequence s, long nanos) {
    at(nanos);
    move(s, SequenceState.RUNNING, SequenceState.PREEMPTED);
    super.preempted(s, nanos);
  }

  @Override
  public void outputsBegin(StepPlan plan, long batchNanos) {
    at(batchNanos);
    assertThat(inOutputs).isFalse();
    inOutputs = true;
    super.outputsBegin(plan, batchNanos);
  }

  @Override
  public void prefillStats(Sequence s, int prompt, int localCached, int externalCached, int cacheCreation) {
    assertThat(prefills).as("reported once").doesNotContainKey(s.requestId());
    assertThat(prompt).isEqualTo(s.promptLength());
    assertThat(localCached).isBetween(0, prompt - 1);
    assertThat(cacheCreation).isBetween(0, prompt - localCached);
    super.prefillStats(s, prompt, localCached, externalCached, cacheCreation);
  }

  @Override
  public void tokens(Sequence s, int count) {
    assertThat(inOutputs).isTrue();
    assertThat(count).isPositive();
    assertThat(prefills).as("before the first token").containsKey(s.requestId());
    tokensOf.merge(s, count, Integer::sum);
    super.tokens(s, count);
  }

  @Override
  public void finished(Sequence s, FinishReason reason, long nanos) {
    SequenceState state = states.get(s);
    assertThat(state).isNotNull().isNotEqualTo(SequenceState.FINISHED);
    move(s, state, SequenceState.FINISHED);
    super.finished(s, reason, nanos);
  }

  @Override
  public void outputsEnd() {
    assertThat(inOutputs).isTrue();
    inOutputs = false;
    super.outputsEnd();
  }
}
