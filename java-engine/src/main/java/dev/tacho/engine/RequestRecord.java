package dev.tacho.engine;

import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.engine.scheduler.Sequence;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * What the engine keeps of one sequence, one of the n of a request. Each field has one writer: the tokenizing pool
 * before the record enters the inbox, then the engine thread; what the output thread reads of it was written before the
 * batch that it came with.
 */
final class RequestRecord {
  private final Generation generation;
  private final int index;
  private final String sequenceId;
  private final SamplerState sampler;
  private final int maxTokens;
  private final SequenceOutput output;

  // Engine thread.
  private @Nullable Sequence sequence;
  private long queuedNanos;
  private long scheduledNanos;
  private int cachedTokens;
  private boolean computedBefore;
  private boolean live;
  private int preemptionWindow;

  // What the admission gate has been given back; by whoever ends it.
  private final AtomicBoolean prefilled = new AtomicBoolean();
  private final AtomicBoolean gone = new AtomicBoolean();

  RequestRecord(
      Generation generation,
      int index,
      String sequenceId,
      SamplerState sampler,
      int maxTokens,
      SequenceOutput output) {
    this.generation = generation;
    this.index = index;
    this.sequenceId = sequenceId;
    this.sampler = sampler;
    this.maxTokens = maxTokens;
    this.output = output;
  }

  Generation generation() {
    return generation;
  }

  /** Which of the request's completions. */
  int index() {
    return index;
  }

  /** Output tokens at most, cut to the context. */
  int maxTokens() {
    return maxTokens;
  }

  /** The output thread's part. */
  SequenceOutput output() {
    return output;
  }

  /** Makes the scheduler's part. */
  Sequence enter(int slot, int slotGeneration) {
    Sequence entered =
        Sequence.builder(sequenceId, generation.promptIds(), sampler)
            .slot(slot, slotGeneration)
            .arrivalNanos(generation.arrivalNanos())
            .priority(generation.request().priority())
            .maxTokens(maxTokens)
            .build();
    sequence = entered;
    live = true;
    return entered;
  }

  /** The scheduler's part; null before the record has entered. */
  @Nullable Sequence sequence() {
    return sequence;
  }

  /** The engine has ended it. */
  void leave() {
    live = false;
  }

  /** True while the engine has it. */
  boolean isLive() {
    return live;
  }

  void queued(long nanos) {
    queuedNanos = nanos;
  }

  /** First admission; later ones, after a preemption, do not move it. */
  void scheduled(long nanos) {
    if (scheduledNanos == 0) {
      scheduledNanos = nanos;
    }
  }

  void cached(int tokens) {
    cachedTokens = tokens;
  }

  /** True the first time: no step has computed it before. */
  boolean enterStep() {
    boolean first = !computedBefore;
    computedBefore = true;
    return first;
  }

  /** True the first time in a window that it is preempted. */
  boolean enterPreemptionWindow(int window) {
    boolean first = preemptionWindow != window;
    preemptionWindow = window;
    return first;
  }

  /** Its first output has come, or its end: the gate does not count its prompt any more. Any thread. */
  void leavePrefill(AdmissionGate gate) {
    if (prefilled.compareAndSet(false, true)) {
      gate.dequeue(generation.promptIds().length);
    }
  }

  /** It has ended: the gate does not count it any more. Any thread. */
  void leave(AdmissionGate gate) {
    leavePrefill(gate);
    if (gone.compareAndSet(false, true)) {
      gate.leave(1);
    }
  }

  long queuedNanos() {
    return queuedNanos;
  }

  /** 0 if it never ran. */
  long scheduledNanos() {
    return scheduledNanos;
  }

  int cachedTokens() {
    return cachedTokens;
  }
}
