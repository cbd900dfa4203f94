package dev.tacho.engine;

import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.engine.scheduler.SchedulerListener;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;

/**
 * Writes down what happens to sequences, when it happens: events into the engine's ring, running totals into its
 * counter page. It computes nothing, reads no clock and allocates nothing. Engine thread only.
 */
final class EventRecorder implements SchedulerListener {
  private static final EngineCounter[] FINISHED = finishedCounters();

  private final EventWriter events;
  private final CounterPage counters;
  private final RequestTable requests;
  private final StepShape shape;
  private long scheduleNanos;
  private int expectedOutputs;
  private boolean inStep;
  private boolean changed;
  private int lookups;
  private long queriedTokens;
  private long hitTokens;

  /**
   * @param events the engine ring's
   * @param counters the engine's running totals
   * @param requests finds the record of a sequence
   * @param slidingWindow tokens that a windowed layer sees, 0 if there are none
   */
  EventRecorder(EventWriter events, CounterPage counters, RequestTable requests, int slidingWindow) {
    this.events = events;
    this.counters = counters;
    this.requests = requests;
    shape = new StepShape(slidingWindow);
  }

  private static EngineCounter[] finishedCounters() {
    EngineCounter[] byReason = new EngineCounter[FinishReason.values().length];
    byReason[FinishReason.STOP.id()] = EngineCounter.FINISHED_STOP;
    byReason[FinishReason.LENGTH.id()] = EngineCounter.FINISHED_LENGTH;
    byReason[FinishReason.ABORT.id()] = EngineCounter.FINISHED_ABORT;
    byReason[FinishReason.ERROR.id()] = EngineCounter.FINISHED_ERROR;
    byReason[FinishReason.REPETITION.id()] = EngineCounter.FINISHED_REPETITION;
    return byReason;
  }

  /** A step was planned; sums up what it will compute. */
  void stepPlanned(StepPlan plan, long nanos) {
    scheduleNanos = nanos;
    shape.reset();
    for (int i = 0; i < plan.numSequences(); i++) {
      boolean isNew = requests.record(plan.sequence(i)).enterStep();
      shape.add(isNew, plan.scheduledTokens(i), plan.startPosition(i));
    }
  }

  /** The step has ended; counts what the scheduler will deliver of it. Before {@link Scheduler#update}. */
  void stepEnded(StepPlan plan, StepResult result) {
    expectedOutputs = 0;
    for (int i = 0; i < plan.numSequences(); i++) {
      if (plan.sequence(i).isLive() && result.tokenCount(i) > 0) {
        expectedOutputs++;
      }
    }
  }

  /** The step has failed; counts the sequences that will end. Before {@link Scheduler#fail}. */
  void stepFailed(StepPlan plan) {
    expectedOutputs = 0;
    for (int i = 0; i < plan.numSequences(); i++) {
      if (plan.sequence(i).isLive()) {
        expectedOutputs++;
      }
    }
  }

  @Override
  public void queued(Sequence sequence, long nanos) {
    RequestRecord record = requests.record(sequence);
    Generation generation = record.generation();
    SamplingParams params = generation.sampling();
    record.queued(nanos);
    events.queued(
        sequence.slot(),
        sequence.generation(),
        nanos,
        generation.arrivalNanos(),
        sequence.promptLength(),
        params.maxTokens() == SamplingParams.UNTIL_CONTEXT_END ? 0 : params.maxTokens(),
        generation.parentNumber(),
        params.n(),
        0);
    counters.addAsOnlyWriter(EngineCounter.ACCEPTED, 1);
    changed = true;
  }

  @Override
  public void scheduled(Sequence sequence, long nanos) {
    requests.record(sequence).scheduled(nanos);
    events.scheduled(sequence.slot(), sequence.generation(), nanos);
    changed = true;
  }

  @Override
  public void preempted(Sequence sequence, long nanos) {
    events.preempted(sequence.slot(), sequence.generation(), nanos);
    counters.addAsOnlyWriter(EngineCounter.PREEMPTIONS, 1);
    changed = true;
  }

  @Override
  public void prefixCacheQueried(Sequence sequence, int queryTokens, int hits, boolean resumed) {
    if (!resumed) {
      lookups++;
      queriedTokens += queryTokens;
      hitTokens += hits;
    }
  }

  @Override
  public void prefixCacheReset() {
    changed = true;
  }

  @Override
  public void outputsBegin(StepPlan plan, long batchNanos) {
    inStep = true;
    changed = true;
    events.step(plan.step(), batchNanos, scheduleNanos, expectedOutputs, shape);
  }

  @Override
  public void prefillStats(
      Sequence sequence,
      int promptTokens,
      int localCachedTokens,
      int externalCachedTokens,
      int cacheCreationTokens) {
    requests.record(sequence).cached(localCachedTokens + externalCachedTokens);
    events.prefillStats(
        sequence.slot(),
        sequence.generation(),
        promptTokens,
        localCachedTokens,
        externalCachedTokens,
        cacheCreationTokens);
    counters.addAsOnlyWriter(EngineCounter.PROMPT_TOKENS, promptTokens);
  }

  @Override
  public void tokens(Sequence sequence, int count) {
    events.tokens(sequence.slot(), sequence.generation(), count);
    counters.addAsOnlyWriter(EngineCounter.GENERATION_TOKENS, count);
  }

  @Override
  public void finished(Sequence sequence, FinishReason reason, long nanos) {
    if (inStep) {
      events.finished(sequence.slot(), sequence.generation(), reason);
    } else if (reason != FinishReason.STOP) {
      events.ended(sequence.slot(), sequence.generation(), reason);
    }
    // The end by a stop string, found by the output thread, is in that thread's ring.
    counters.addAsOnlyWriter(FINISHED[reason.id()], 1);
    requests.release(sequence);
    changed = true;
  }

  @Override
  public void outputsEnd() {
    inStep = false;
  }

  /** The engine had ended a sequence for one reason when it turned out that a stop string had ended it before. */
  void reasonCorrected(FinishReason counted, FinishReason actual) {
    counters.addAsOnlyWriter(FINISHED[counted.id()], -1);
    counters.addAsOnlyWriter(FINISHED[actual.id()], 1);
  }

  /** A sequence of an engine that has died; the scheduler's state is not to be trusted any more. */
  void died(RequestRecord record) {
    Sequence sequence = record.sequence();
    if (sequence != null) {
      inStep = false;
      finished(sequence, FinishReason.ERROR, 0);
    }
  }

  /** Shows the collector what has happened, with the scheduler's state if anything changed it. */
  void commit(Scheduler scheduler) {
    if (!changed) {
      return;
    }
    KvBlockPool pool = scheduler.pool();
    snapshot(
        scheduler.numRunning(),
        scheduler.numWaiting(),
        scheduler.numDeferred(),
        pool.numFree(),
        pool.numBlocks() - 1);
  }

  /** Shows the collector that nothing runs any more. */
  void commitEmpty(KvBlockPool pool) {
    snapshot(0, 0, 0, pool.numBlocks() - 1, pool.numBlocks() - 1);
  }

  private void snapshot(int running, int waiting, int deferred, int freeBlocks, int blocks) {
    events.snapshot(running, waiting, deferred, freeBlocks, blocks, lookups, queriedTokens, hitTokens);
    lookups = 0;
    queriedTokens = 0;
    hitTokens = 0;
    changed = false;
    events.commit();
  }
}
