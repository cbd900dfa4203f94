package dev.tacho.metrics.collector;

import dev.tacho.metrics.event.EventDescriptor;
import dev.tacho.metrics.event.EventReader;
import dev.tacho.metrics.event.EventType;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.stats.IterationDetails;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.RequestTimeline;
import dev.tacho.metrics.stats.SchedulerStats;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Turns one engine's records into statistics and hands them to a logger. Used under the collector's lock.
 *
 * <p>What the engine did takes effect as its records are read: queue and schedule stamps, preemptions, snapshots. What
 * callers saw, the outputs of a step, waits for the step's pick-up in the output ring, because the time to the first
 * token ends there and because a stop string found there ends a sequence. The two are joined by the number of the step.
 * A sequence that ended without an output leaves after the outputs that came before it. Records of unknown sequences
 * are passed over.
 */
final class EventSink {
  /** Steps that may wait for their pick-up; beyond that the oldest counts as picked up when it was built. */
  private static final int MAX_PENDING = 4096;
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
  private final Map<Integer, String> names = new HashMap<>();
  private final SchedulerStats scheduler = new SchedulerStats();
  private final IterationStats iteration = new IterationStats();
  /** What happened outside of any batch of outputs. */
  private final IterationStats apart = new IterationStats();

  private final ArrayDeque<PendingStep> pending = new ArrayDeque<>();
  private final ArrayDeque<PendingStep> spare = new ArrayDeque<>();
  private @Nullable PendingStep opened;

  private boolean pickedUp;
  private long pickedUpStep;
  private long pickUpNanos;
  private long[] stopped = new long[16];
  private int stoppedCount;

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

  /** The string that a name id stands for, or null if it was lost. */
  @Nullable String name(int id) {
    return names.get(id);
  }

  /** Reads a record of the engine ring. */
  int engineRecord(MemorySegment memory, long offset) {
    EventReader record = reader.wrap(memory, offset);
    EventType type = record.type();
    switch (type) {
      case QUEUED -> queued(record);
      case SCHEDULED -> {
        RequestTimeline timeline = timelines.find(record.slot(), record.generation());
        if (timeline != null) {
          timeline.scheduled(record.nanos());
        }
      }
      case PREEMPTED -> {
        RequestTimeline timeline = timelines.find(record.slot(), record.generation());
        if (timeline != null) {
          timeline.preempted();
          apart.addPreemption();
        }
      }
      case STEP -> step(record);
      case TOKENS, CORRUPTED, FINISHED, PREFILL_STATS -> output(record);
      case ENDED -> {
        PendingStep last = pending.peekLast();
        if (last != null) {
          last.add(record.word());
        } else {
          ended(record.word(), apart);
        }
      }
      case SNAPSHOT -> snapshot(record);
      case NAME -> names.put(record.slot(), record.name());
      case DRAFT -> {
        scheduler.speculation().grow(Math.max(record.drafted(), record.accepted()));
        scheduler.speculation().add(record.drafted(), record.accepted());
      }
      case EVICTED -> evicted(record);
      case DETAILS -> scheduler.details(new IterationDetails(record.detailsIndex(), record.contextRequests(),
          record.contextTokens(), record.generationRequests(), record.generationTokens(),
          record.elapsedNanos() / NANOS_IN_A_MILLISECOND, false, 0, 0));
      case PICK_UP, STOPPED -> throw new IllegalStateException(type + " in the ring of the engine thread");
    }
    return record.bytes();
  }

  /** Reads a record of the output ring. */
  int outputRecord(MemorySegment memory, long offset) {
    EventReader record = reader.wrap(memory, offset);
    EventType type = record.type();
    switch (type) {
      case PICK_UP -> {
        completePickedUp();
        pickedUp = true;
        pickedUpStep = record.step();
        pickUpNanos = record.iterationNanos();
        stoppedCount = 0;
      }
      case STOPPED -> {
        if (stoppedCount == stopped.length) {
          stopped = Arrays.copyOf(stopped, stoppedCount * 2);
        }
        stopped[stoppedCount++] = sequence(record.word());
      }
      case ENDED -> {
        completePickedUp();
        ended(record.word(), apart);
      }
      case NAME -> names.put(record.slot(), record.name());
      default -> throw new IllegalStateException(type + " in the ring of the output thread");
    }
    return record.bytes();
  }

  /** Completes what can be completed after both rings were read up to the positions snapshot before. */
  void endOfDrain() {
    completePickedUp();
    while (pending.size() > MAX_PENDING) {
      PendingStep oldest = pending.removeFirst();
      complete(oldest, oldest.batchNanos());
    }
    if (!apart.isEmpty()) {
      out.record(engineIndex, null, apart);
      apart.clear();
    }
  }

  private void queued(EventReader record) {
    RequestTimeline known = timelines.find(record.slot(), record.generation());
    if (known != null) {
      known.queuedAgain(record.nanos());
      return;
    }
    RequestTimeline timeline = new RequestTimeline(record.nanos(), record.arrivalNanos(), record.promptTokens(),
        record.maxTokens(), record.parent(), record.n(), record.adapter());
    adapters.opened(record.adapter());
    RequestTimeline lost = timelines.add(record.slot(), record.generation(), timeline);
    if (lost != null) {
      parents.ended(lost);
      adapters.closed(lost.adapter());
    }
  }

  private void step(EventReader record) {
    PerfEstimator work = estimator;
    if (work != null) {
      record.shape(shape);
      work.estimate(shape, scheduler.work());
    }
    opened = null;
    if (record.outputs() > 0) {
      PendingStep next = spare.isEmpty() ? new PendingStep() : spare.removeLast();
      next.open(record.step(), record.batchNanos(), record.outputs());
      pending.addLast(next);
      opened = next;
    }
  }

  private void output(EventReader record) {
    PendingStep step = opened;
    if (step != null) {
      step.add(record.word());
      if (record.type() == EventType.PREFILL_STATS) {
        step.add(record.prefillPromptTokens());
        step.add(record.localCachedTokens());
        step.add(record.externalCachedTokens());
      }
    }
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
    scheduler.queues(record.running(), record.waiting(), record.deferred());
    scheduler.kvCache(record.freeBlocks(), record.blocks());
    if (adapters.hasChanged()) {
      scheduler.adapters(adapters.names(names));
    }
    scheduler.prefixCache().add(record.lookups(), record.queriedTokens(), record.hitTokens());
    out.record(engineIndex, scheduler, null);
    scheduler.clearIncrements();
  }

  private void completePickedUp() {
    if (!pickedUp) {
      return;
    }
    pickedUp = false;
    PendingStep next = pending.peekFirst();
    while (next != null && next.step() <= pickedUpStep) {
      pending.removeFirst();
      complete(next, pickUpNanos);
      next = pending.peekFirst();
    }
  }

  private void complete(PendingStep step, long nanos) {
    iteration.clear();
    iteration.outputs(step.outputs());
    iteration.addPreemptions(apart.preemptions());
    for (FinishReason reason : FinishReason.values()) {
      for (long i = apart.ended(reason); i > 0; i--) {
        iteration.addEnded(reason);
      }
    }
    apart.clear();
    int i = 0;
    while (i < step.size()) {
      i += replay(step, i, nanos);
    }
    out.record(engineIndex, null, iteration);
    if (opened == step) {
      opened = null;
    }
    spare.addLast(step);
  }

  private int replay(PendingStep step, int index, long nanos) {
    long word = step.word(index);
    int slot = EventDescriptor.slot(word);
    int generation = EventDescriptor.generation(word);
    EventType type = EventType.of(EventDescriptor.typeId(word));
    if (type == EventType.ENDED) {
      ended(word, iteration);
      return 1;
    }
    RequestTimeline timeline = timelines.find(slot, generation);
    switch (type) {
      case PREFILL_STATS -> {
        if (timeline != null) {
          timeline.prefillStats((int) step.word(index + 1), (int) step.word(index + 2), (int) step.word(index + 3),
              iteration);
        }
        return 4;
      }
      case CORRUPTED -> {
        if (timeline != null) {
          timeline.corrupted();
        }
      }
      case TOKENS -> {
        if (timeline != null) {
          timeline.output(EventDescriptor.argument(word), step.batchNanos(), nanos, iteration);
          if (isStopped(word)) {
            finished(slot, generation, timeline, FinishReason.STOP, nanos);
          }
        }
      }
      case FINISHED -> {
        if (timeline != null) {
          if (!timeline.hasOutputAt(step.batchNanos())) {
            timeline.output(0, step.batchNanos(), nanos, iteration);
          }
          finished(slot, generation, timeline, FinishReason.of(EventDescriptor.argument(word)), nanos);
        }
      }
      default -> throw new IllegalStateException(type + " among the outputs of step " + step.step());
    }
    return 1;
  }

  private void finished(int slot, int generation, RequestTimeline timeline, FinishReason reason, long nanos) {
    iteration.addFinished(timeline.finished(reason, nanos));
    parents.finished(timeline, iteration);
    adapters.closed(timeline.adapter());
    timelines.remove(slot, generation);
  }

  private void ended(long word, IterationStats to) {
    RequestTimeline timeline = timelines.remove(EventDescriptor.slot(word), EventDescriptor.generation(word));
    if (timeline != null) {
      to.addEnded(FinishReason.of(EventDescriptor.argument(word)));
      parents.ended(timeline);
      adapters.closed(timeline.adapter());
    }
  }

  private boolean isStopped(long word) {
    long wanted = sequence(word);
    for (int i = 0; i < stoppedCount; i++) {
      if (stopped[i] == wanted) {
        return true;
      }
    }
    return false;
  }

  /** Slot and generation of a word, without type and argument. */
  private static long sequence(long word) {
    return word >>> 24;
  }
}
