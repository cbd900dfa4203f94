package dev.tacho.metrics.event;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * Reads one event record where it lies. A flyweight of one thread: {@link #wrap} moves it to the next record; nothing
 * is copied. Accessors are valid for the types that their names say; the offsets are those of {@link EventDescriptor}.
 */
public final class EventReader {
  private MemorySegment memory = MemorySegment.NULL;
  private long at;
  private long word;

  /**
   * Moves to a record.
   *
   * @return this
   */
  public EventReader wrap(MemorySegment memory, long offset) {
    this.memory = memory;
    this.at = offset;
    this.word = memory.get(EventDescriptor.LONG, offset);
    return this;
  }

  /** The record's first word. */
  public long word() {
    return word;
  }

  /** The record's type. */
  public EventType type() {
    return EventType.of(EventDescriptor.typeId(word));
  }

  /** Length of the record in bytes. */
  public int bytes() {
    EventType type = type();
    return switch (type) {
      case NAME, REQUEST_ID -> EventDescriptor.WORD_BYTES + ((argument() + 7) & ~7);
      case STEP -> EventDescriptor.stepBytes(argument());
      case SNAPSHOT -> EventDescriptor.SNAPSHOT_BYTES + argument() * EventDescriptor.SNAPSHOT_LOOKUP_BYTES;
      default -> type.bytes();
    };
  }

  /** The sequence's slot. */
  public int slot() {
    return EventDescriptor.slot(word);
  }

  /** Low 16 bits of the slot's generation. */
  public int generation() {
    return EventDescriptor.generation(word);
  }

  /** TOKENS, STEP_OF_ONE: new tokens. FINISHED, ENDED: the reason's number. */
  public int argument() {
    return EventDescriptor.argument(word);
  }

  /** FINISHED, ENDED: the reason. */
  public FinishReason reason() {
    return FinishReason.of(argument());
  }

  /** QUEUED, SCHEDULED, PREEMPTED: the stamp. */
  public long nanos() {
    return longAt(EventDescriptor.FIRST);
  }

  /** QUEUED: arrival of the request. */
  public long arrivalNanos() {
    return longAt(EventDescriptor.QUEUED_ARRIVAL);
  }

  /** QUEUED: length of the prompt. */
  public int promptTokens() {
    return intAt(EventDescriptor.QUEUED_PROMPT);
  }

  /** QUEUED: limit of generated tokens, 0 if none. */
  public int maxTokens() {
    return intAt(EventDescriptor.QUEUED_MAX_TOKENS);
  }

  /** QUEUED: the parent's number, 0 if none. */
  public int parent() {
    return intAt(EventDescriptor.QUEUED_PARENT);
  }

  /** QUEUED: sequences of the request. */
  public int n() {
    return intAt(EventDescriptor.QUEUED_N);
  }

  /** QUEUED: name id of the adapter, 0 if none. */
  public int adapter() {
    return intAt(EventDescriptor.QUEUED_ADAPTER);
  }

  /** STEP, STEP_OF_ONE, PICK_UP: the step's number. */
  public long step() {
    return longAt(EventDescriptor.FIRST);
  }

  /** STEP, STEP_OF_ONE: when the outputs were built. */
  public long batchNanos() {
    return longAt(EventDescriptor.STEP_BATCH);
  }

  /** STEP, STEP_OF_ONE: start of the schedule call. */
  public long scheduleNanos() {
    return isStepOfOne()
        ? batchNanos() - intAt(EventDescriptor.STEP_OF_ONE_AGE)
        : longAt(EventDescriptor.STEP_SCHEDULE);
  }

  /** STEP, STEP_OF_ONE: sequences with an output. */
  public int outputs() {
    return isStepOfOne() ? 1 : slot();
  }

  /** STEP, STEP_OF_ONE: copies the sums into {@code shape}. */
  public void shape(StepShape shape) {
    if (isStepOfOne()) {
      shape.readOne(intAt(EventDescriptor.STEP_OF_ONE_CONTEXT));
    } else {
      shape.read(this);
    }
  }

  private boolean isStepOfOne() {
    return EventDescriptor.typeId(word) == EventType.STEP_OF_ONE.id();
  }

  /** PREFILL_STATS: length of the prompt. */
  public int prefillPromptTokens() {
    return intAt(EventDescriptor.PREFILL_PROMPT);
  }

  /** PREFILL_STATS: tokens found in the prefix cache. */
  public int localCachedTokens() {
    return intAt(EventDescriptor.PREFILL_LOCAL);
  }

  /** PREFILL_STATS: tokens supplied by a connector. */
  public int externalCachedTokens() {
    return intAt(EventDescriptor.PREFILL_EXTERNAL);
  }

  /** PREFILL_STATS: tokens that the request added to the prefix cache. */
  public int cacheCreationTokens() {
    return intAt(EventDescriptor.PREFILL_CREATION);
  }

  /** SNAPSHOT: running requests. */
  public int running() {
    return intAt(EventDescriptor.SNAPSHOT_RUNNING);
  }

  /** SNAPSHOT: waiting requests that are not deferred. */
  public int waiting() {
    return intAt(EventDescriptor.SNAPSHOT_WAITING);
  }

  /** SNAPSHOT: deferred requests. */
  public int deferred() {
    return intAt(EventDescriptor.SNAPSHOT_DEFERRED);
  }

  /** SNAPSHOT: free KV blocks. */
  public int freeBlocks() {
    return intAt(EventDescriptor.SNAPSHOT_FREE_BLOCKS);
  }

  /** SNAPSHOT: KV blocks without the null block. */
  public int blocks() {
    return intAt(EventDescriptor.SNAPSHOT_BLOCKS);
  }

  /** SNAPSHOT: requests that looked up the prefix cache since the snapshot before. */
  public int lookups() {
    return intAt(EventDescriptor.SNAPSHOT_LOOKUPS);
  }

  /** SNAPSHOT: tokens that they looked up. */
  public long queriedTokens() {
    return argument() == 0 ? 0 : longAt(EventDescriptor.SNAPSHOT_QUERIES);
  }

  /** SNAPSHOT: tokens that they found. */
  public long hitTokens() {
    return argument() == 0 ? 0 : longAt(EventDescriptor.SNAPSHOT_HITS);
  }

  /** PICK_UP: when the output thread took the outputs. */
  public long iterationNanos() {
    return longAt(EventDescriptor.PICK_UP_NANOS);
  }

  /** DRAFT: tokens drafted. */
  public int drafted() {
    return argument() >>> 8;
  }

  /** DRAFT: tokens accepted. */
  public int accepted() {
    return argument() & EventDescriptor.MAX_DRAFT_TOKENS;
  }

  /** EVICTED: allocation to eviction. */
  public long lifetimeNanos() {
    return longAt(EventDescriptor.FIRST);
  }

  /** EVICTED: last use to eviction. */
  public long idleNanos() {
    return longAt(EventDescriptor.EVICTED_IDLE);
  }

  /** EVICTED: gaps between uses that a record has room for. */
  public int gaps() {
    return EventDescriptor.EVICTED_MAX_GAPS;
  }

  /** EVICTED: time between two uses, negative if there is none. */
  public long gapNanos(int gap) {
    return longAt(EventDescriptor.EVICTED_GAPS + gap * Long.BYTES);
  }

  /** DETAILS: number of the step. */
  public long detailsIndex() {
    return longAt(EventDescriptor.FIRST);
  }

  /** DETAILS: context requests. */
  public int contextRequests() {
    return intAt(EventDescriptor.DETAILS_CONTEXT_REQUESTS);
  }

  /** DETAILS: their tokens. */
  public int contextTokens() {
    return intAt(EventDescriptor.DETAILS_CONTEXT_TOKENS);
  }

  /** DETAILS: generation requests. */
  public int generationRequests() {
    return intAt(EventDescriptor.DETAILS_GENERATION_REQUESTS);
  }

  /** DETAILS: their tokens. */
  public int generationTokens() {
    return intAt(EventDescriptor.DETAILS_GENERATION_TOKENS);
  }

  /** DETAILS: time that the model took. */
  public long elapsedNanos() {
    return longAt(EventDescriptor.DETAILS_NANOS);
  }

  /** GRAPH: kind of the graph. */
  public GraphMode graphMode() {
    return GraphMode.of(argument());
  }

  /** GRAPH: tokens of the step. */
  public int graphTokens() {
    return intAt(EventDescriptor.GRAPH_TOKENS);
  }

  /** GRAPH: tokens for which the graph was captured. */
  public int paddedTokens() {
    return intAt(EventDescriptor.GRAPH_PADDED);
  }

  /** REQUEST_ID: the id. */
  public RequestId requestId() {
    return RequestId.read(memory, at + EventDescriptor.FIRST, argument());
  }

  /** NAME: the string. REQUEST_ID: the id. */
  public String text() {
    byte[] bytes = memory.asSlice(at + EventDescriptor.FIRST, argument()).toArray(ValueLayout.JAVA_BYTE);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  long stepLong(int offset) {
    return longAt(offset);
  }

  private long longAt(int offset) {
    return memory.get(EventDescriptor.LONG, at + offset);
  }

  private int intAt(int offset) {
    return memory.get(EventDescriptor.INT, at + offset);
  }
}
