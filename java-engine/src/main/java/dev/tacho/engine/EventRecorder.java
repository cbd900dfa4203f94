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
import dev.tacho.metrics.stats.ResidencySampler;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * Writes down what happens to sequences, when it happens: events into the engine's ring, running totals into its
 * counter page. It computes nothing, reads no clock and allocates nothing. Engine thread only.
 */
final class EventRecorder implements SchedulerListener {
  private static final EngineCounter[] FINISHED = finishedCounters();
  private static final long RESIDENCY_SEED = 1;

  private final EventWriter events;
  private final CounterPage counters;
  private final RequestTable requests;
  private final EngineLoad load;
  private final Options options;
  private final @Nullable StepDetails details;
  private final PreemptionWatch preemptions = new PreemptionWatch();
  private final ResidencySampler.Evictions evictions;
  private @Nullable ResidencySampler residency;
  // Two steps may be planned at a time: the place of a step is its number's parity.
  private final StepShape[] shapes;
  private final long[] scheduleNanos = new long[2];
  private int expectedOutputs;
  private boolean inStep;
  private boolean changed;
  private int lookups;
  private long queriedTokens;
  private long hitTokens;

  /**
   * What is recorded beside the usual.
   *
   * @param residencySample share of the KV blocks whose life is followed, in [0, 1]
   * @param iterationDetails what each step works on, for the log
   * @param nansInLogits which sequences had a NaN in their logits
   */
  record Options(double residencySample, boolean iterationDetails, boolean nansInLogits) {}

  /**
   * @param events the engine ring's
   * @param counters the engine's running totals
   * @param requests finds the record of a sequence
   * @param load learns what the scheduler has
   * @param slidingWindow tokens that a windowed layer sees, 0 if there are none
   * @param options what is recorded beside the usual
   */
  EventRecorder(
      EventWriter events,
      CounterPage counters,
      RequestTable requests,
      EngineLoad load,
      int slidingWindow,
      Options options) {
    this.events = events;
    evictions = events::evicted;
    this.counters = counters;
    this.requests = requests;
    this.load = load;
    this.options = options;
    shapes = new StepShape[] {new StepShape(slidingWindow), new StepShape(slidingWindow)};
    details = options.iterationDetails() ? new StepDetails() : null;
  }

  /** Follows a sample of a pool's blocks, if that was asked for. */
  void watchResidency(KvBlockPool pool) {
    if (options.residencySample() > 0) {
      SplittableRandom random = new SplittableRandom(RESIDENCY_SEED);
      residency = new ResidencySampler(pool.numBlocks(), options.residencySample(), random::nextDouble);
      pool.watch(residency);
    }
  }

  /** What is counted of preemptions for the log. Engine thread. */
  PreemptionWatch preemptions() {
    return preemptions;
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

  /**
   * A step was planned; sums up what it will compute. Shows at once whom it admitted or preempted: a long prefill is
   * running while it runs.
   */
  void stepPlanned(Scheduler scheduler, StepPlan plan, long nanos) {
    commit(scheduler);
    StepShape shape = shapes[place(plan)];
    scheduleNanos[place(plan)] = nanos;
    preemptions.planned(plan.numSequences());
    shape.reset();
    for (int i = 0; i < plan.numSequences(); i++) {
      boolean isNew = requests.record(plan.sequence(i)).enterStep();
      shape.add(isNew, plan.scheduledTokens(i), plan.startPosition(i));
    }
    if (details != null) {
      details.planned(plan, nanos);
    }
  }

  private static int place(StepPlan plan) {
    return (int) (plan.step() & 1);
  }

  /** The step has ended; counts what the scheduler will deliver of it. Before {@link Scheduler#update}. */
  void stepEnded(StepPlan plan, StepResult result) {
    expectedOutputs = 0;
    for (int i = 0; i < plan.numSequences(); i++) {
      Sequence sequence = plan.sequence(i);
      if (sequence.isLive() && result.tokenCount(i) > 0 && !sequence.discards(plan.step())) {
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

  /** The workers had no step for so long although there was something to compute. */
  void bubble(long nanos) {
    counters.addAsOnlyWriter(EngineCounter.BUBBLE_NANOS, nanos);
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
    events.requestId(sequence.slot(), sequence.generation(), generation.eventId());
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
    preemptions.preempted(requests.record(sequence), nanos);
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
    events.step(plan.step(), batchNanos, scheduleNanos[place(plan)], expectedOutputs, shapes[place(plan)]);
    if (details != null) {
      details.ended(plan, batchNanos, events);
    }
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
  public void nanInLogits(Sequence sequence) {
    if (options.nansInLogits()) {
      events.corrupted(sequence.slot(), sequence.generation());
    }
  }

  @Override
  public void draftsVerified(Sequence sequence, int drafts, int accepted) {
    events.draft(sequence.slot(), sequence.generation(), drafts, accepted);
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
    } else {
      events.ended(sequence.slot(), sequence.generation(), reason);
    }
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
    load.snapshot(running, waiting + deferred, 1 - (double) freeBlocks / blocks);
    if (residency != null) {
      residency.drainTo(evictions);
    }
    events.snapshot(running, waiting, deferred, freeBlocks, blocks, lookups, queriedTokens, hitTokens);
    lookups = 0;
    queriedTokens = 0;
    hitTokens = 0;
    changed = false;
    events.commit();
  }
}
