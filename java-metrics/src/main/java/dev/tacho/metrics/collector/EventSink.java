package dev.tacho.metrics.collector;

import dev.tacho.metrics.event.EventDescriptor;
import dev.tacho.metrics.event.EventReader;
import dev.tacho.metrics.event.EventType;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.ring.RecordConsumer;
import dev.tacho.metrics.stats.FinishedRequestStats;
import dev.tacho.metrics.stats.GraphStat;
import dev.tacho.metrics.stats.IterationDetails;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.RequestTimeline;
import dev.tacho.metrics.stats.SchedulerStats;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Turns one engine's records into statistics and hands them to a logger. Used under the collector's lock.
 *
 * <p>The engine's records are read strictly in their order. A step whose outputs have not been picked up ends the
 * reading, because the time to the first token ends at the pick-up and a stop string found there ends a sequence; it
 * goes on with the next drain. Statistics are handed out at the engine's snapshots, and at the end of what it has
 * committed, so that whoever looks between two drains finds as many sequences accepted and not ended as there are
 * running and waiting. A sequence that a stop string ended counts when the engine says that it has left.
 *
 * <p>Records of unknown sequences are passed over.
 */
final class EventSink {
  private static final double NANOS_IN_A_SECOND = 1e9;
  private static final double NANOS_IN_A_MILLISECOND = 1e6;

  private final int engineIndex;
  private final @Nullable PerfEstimator estimator;
  private final StatLogger out;

  private final EventReader reader = new EventReader();
  private final StepShape shape = new StepShape();
  private final TimelineTable timelines = new TimelineTable();
  private final ParentTable parents = new ParentTable();
  private final AdapterTable adapters = new AdapterTable();
  private final PickUps pickUps = new PickUps();
  private final Map<Integer, String> names = new HashMap<>();
  private final SchedulerStats scheduler = new SchedulerStats();
  private final IterationStats iteration = new IterationStats();

  private boolean waitForPickUps;
  private boolean heldBack;
  private boolean inStep;
  private long step;
  private long batchNanos;
  private long pickUpNanos;
  private long lastStepNanos = DrainReport.NONE;

  /**
   * A sink.
   *
   * @param engineIndex handed to the logger
   * @param estimator of each step's work, or null
   * @param out takes the statistics
   */
  EventSink(int engineIndex, @Nullable PerfEstimator estimator, StatLogger out) {
    this.engineIndex = engineIndex;
    this.estimator = estimator;
    this.out = out;
  }

  /** Sequences that have not ended. */
  int open() {
    return timelines.size();
  }

  /** Begins a drain; without waiting, steps that nobody picked up count as picked up when they were built. */
  void beginDrain(boolean waitsForPickUps) {
    waitForPickUps = waitsForPickUps;
    heldBack = false;
  }

  /** Records of the engine ring were lost: outputs that follow belong to no known step until the next one begins. */
  void recordsLost() {
    inStep = false;
  }

  /** Reads a record of the output ring. */
  int outputRecord(MemorySegment memory, long offset) {
    EventReader record = reader.wrap(memory, offset);
    EventType type = record.type();
    switch (type) {
      case PICK_UP -> pickUps.add(record.step(), record.iterationNanos());
      case STOPPED -> pickUps.addStopped(sequence(record.word()));
      default -> throw new IllegalStateException(type + " in the ring of the output thread");
    }
    return record.bytes();
  }

  /** Reads a record of the engine ring, after the output ring was read. */
  int engineRecord(MemorySegment memory, long offset) {
    EventReader record = reader.wrap(memory, offset);
    EventType type = record.type();
    switch (type) {
      case TOKENS -> tokens(record);
      case QUEUED -> queued(record);
      case REQUEST_ID -> {
        RequestTimeline timeline = timelines.find(record.slot(), record.generation());
        if (timeline != null) {
          timeline.requestId(record.requestId());
        }
      }
      case SCHEDULED -> timelines.scheduled(record.slot(), record.generation(), record.nanos());
      case PREEMPTED -> {
        if (timelines.preempted(record.slot(), record.generation(), record.nanos()) != null) {
          iteration.addPreemption();
        }
      }
      case STEP -> {
        if (!step(record)) {
          return RecordConsumer.NOT_YET;
        }
      }
      case STEP_OF_ONE -> {
        if (!step(record)) {
          return RecordConsumer.NOT_YET;
        }
        tokens(record);
      }
      case CORRUPTED -> {
        RequestTimeline timeline = ofStep(record);
        if (timeline != null) {
          timeline.corrupted();
        }
      }
      case FINISHED -> finished(record);
      case PREFILL_STATS -> {
        RequestTimeline timeline = ofStep(record);
        if (timeline != null) {
          timeline.prefillStats(record.prefillPromptTokens(), record.localCachedTokens(),
              record.externalCachedTokens(), iteration);
        }
      }
      case ENDED -> ended(record);
      case SNAPSHOT -> snapshot(record);
      case NAME -> names.put(record.slot(), record.text());
      case DRAFT -> {
        scheduler.speculation().grow(Math.max(record.drafted(), record.accepted()));
        scheduler.speculation().add(record.drafted(), record.accepted());
      }
      case EVICTED -> evicted(record);
      case DETAILS -> scheduler.details(new IterationDetails(record.detailsIndex(), record.contextRequests(),
          record.contextTokens(), record.generationRequests(), record.generationTokens(),
          record.elapsedNanos() / NANOS_IN_A_MILLISECOND, false, 0, 0));
      case GRAPH -> scheduler.graph(new GraphStat(record.graphTokens(), record.paddedTokens(),
          record.paddedTokens() - record.graphTokens(), record.graphMode().name()));
      case PICK_UP, STOPPED -> throw new IllegalStateException(type + " in the ring of the engine thread");
    }
    return record.bytes();
  }

  /** Hands out what was read, unless a step that was held back belongs to it. */
  void endDrain() {
    if (!heldBack) {
      handOut();
    }
  }

  /** When the step that was read last built its outputs, or {@link DrainReport#NONE}. */
  long lastStepNanos() {
    return lastStepNanos;
  }

  /** Since when the sequence waits whose present wait is the longest, or {@link DrainReport#NONE}. */
  long longestWaitingNanos() {
    RequestTimeline timeline = timelines.longestWaiting();
    return timeline == null ? DrainReport.NONE : timeline.waitingSinceNanos();
  }

  /** When the open sequence that was scheduled first was scheduled, or {@link DrainReport#NONE}. */
  long longestRunningNanos() {
    RequestTimeline timeline = timelines.longestRunning();
    return timeline == null ? DrainReport.NONE : timeline.scheduledNanos();
  }

  private void handOut() {
    if (!iteration.isEmpty()) {
      out.record(engineIndex, null, iteration);
      iteration.clear();
    }
  }

  private void queued(EventReader record) {
    RequestTimeline known = timelines.find(record.slot(), record.generation());
    if (known != null) {
      known.queuedAgain(record.nanos());
      return;
    }
    String adapter = names.get(record.adapter());
    RequestTimeline timeline = new RequestTimeline(record.nanos(), record.arrivalNanos(), record.promptTokens(),
        record.maxTokens(), record.parent(), record.n(), adapter);
    iteration.addAccepted();
    adapters.opened(adapter);
    RequestTimeline lost = timelines.add(record.slot(), record.generation(), timeline);
    if (lost != null) {
      parents.ended(lost);
      adapters.closed(lost.adapter());
    }
  }

  /** Returns false if the step is to be read later. */
  private boolean step(EventReader record) {
    int outputs = record.outputs();
    if (outputs > 0) {
      boolean pickedUp = pickUps.moveTo(record.step());
      if (!pickedUp && waitForPickUps) {
        heldBack = true;
        return false;
      }
      if (iteration.outputs() > 0) {
        handOut();
      }
      iteration.outputs(outputs);
      step = record.step();
      batchNanos = record.batchNanos();
      pickUpNanos = pickedUp ? pickUps.nanos() : batchNanos;
    }
    inStep = outputs > 0;
    lastStepNanos = record.batchNanos();
    PerfEstimator work = estimator;
    if (work != null) {
      record.shape(shape);
      work.estimate(shape, scheduler.work());
    }
    return true;
  }

  /** The timeline that an output of the step at hand belongs to; null if it is unknown or a stop string ended it. */
  private @Nullable RequestTimeline ofStep(EventReader record) {
    RequestTimeline timeline = inStep ? timelines.find(record.slot(), record.generation()) : null;
    return timeline == null || timeline.isStopped() ? null : timeline;
  }

  private void tokens(EventReader record) {
    RequestTimeline timeline = ofStep(record);
    if (timeline != null) {
      timeline.output(record.argument(), batchNanos, pickUpNanos, iteration);
      if (pickUps.isStopped(step, sequence(record.word()))) {
        timeline.stopped(pickUpNanos);
      }
    }
  }

  private void finished(EventReader record) {
    RequestTimeline timeline = inStep ? timelines.remove(record.slot(), record.generation()) : null;
    if (timeline == null) {
      return;
    }
    if (timeline.isStopped()) {
      finished(timeline, FinishReason.STOP, timeline.stoppedNanos());
      return;
    }
    if (!timeline.hasOutputAt(batchNanos)) {
      timeline.output(0, batchNanos, pickUpNanos, iteration);
    }
    finished(timeline, record.reason(), pickUpNanos);
  }

  private void ended(EventReader record) {
    RequestTimeline timeline = timelines.remove(record.slot(), record.generation());
    if (timeline == null) {
      return;
    }
    if (timeline.isStopped()) {
      finished(timeline, FinishReason.STOP, timeline.stoppedNanos());
      return;
    }
    iteration.addEnded(record.reason());
    parents.ended(timeline);
    adapters.closed(timeline.adapter());
  }

  private void finished(RequestTimeline timeline, FinishReason reason, long nanos) {
    FinishedRequestStats stats = timeline.finished(reason, nanos);
    iteration.addFinished(stats);
    iteration.longestEndToEnd().observe(stats.endToEndSeconds(), timeline.requestId());
    parents.finished(timeline, iteration);
    adapters.closed(timeline.adapter());
  }

  private void evicted(EventReader record) {
    scheduler.residency().add(record.lifetimeNanos() / NANOS_IN_A_SECOND, record.idleNanos() / NANOS_IN_A_SECOND);
    for (int gap = 0; gap < record.gaps(); gap++) {
      if (record.gapNanos(gap) >= 0) {
        scheduler.residency().addReuseGap(record.gapNanos(gap) / NANOS_IN_A_SECOND);
      }
    }
  }

  private void snapshot(EventReader record) {
    inStep = false;
    scheduler.queues(record.running(), record.waiting(), record.deferred());
    scheduler.kvCache(record.freeBlocks(), record.blocks());
    if (adapters.hasChanged()) {
      scheduler.adapters(adapters.names());
    }
    scheduler.prefixCache().add(record.lookups(), record.queriedTokens(), record.hitTokens());
    out.record(engineIndex, scheduler, null);
    scheduler.clearIncrements();
    handOut();
  }

  /** Slot and generation of a word, without type and argument. */
  private static long sequence(long word) {
    return word >>> EventDescriptor.SEQUENCE_SHIFT;
  }
}
