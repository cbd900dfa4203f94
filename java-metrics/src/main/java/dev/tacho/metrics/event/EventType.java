package dev.tacho.metrics.event;

/**
 * The kinds of event records. Ids are stable: they are what lies in rings and in files of other versions. The bytes of
 * each are drawn in {@link EventDescriptor}.
 */
public enum EventType {
  /** A string and the number that stands for it from here on. */
  NAME(1, 0, "name id, UTF-8 bytes"),
  /** A request entered the scheduler. */
  QUEUED(2, EventDescriptor.QUEUED_BYTES, "queued and arrival nanoseconds, prompt and max tokens, parent, n, adapter"),
  /** A request moved into the running list. */
  SCHEDULED(3, EventDescriptor.STAMP_BYTES, "nanoseconds"),
  /** A running request lost its place. */
  PREEMPTED(4, EventDescriptor.STAMP_BYTES, "nanoseconds"),
  /** A step's outputs were built; TOKENS, PREFILL_STATS, CORRUPTED and FINISHED that follow belong to it. */
  STEP(5, 0, "step number, batch and schedule nanoseconds, outputs, token and context sums"),
  /** New tokens of one sequence. */
  TOKENS(6, EventDescriptor.WORD_BYTES, "tokens"),
  /** Where the prompt of a sequence came from; precedes its first TOKENS. */
  PREFILL_STATS(7, EventDescriptor.PREFILL_STATS_BYTES, "prompt, locally cached, externally cached, created tokens"),
  /** The output of a sequence was computed from logits with a NaN; precedes its TOKENS. */
  CORRUPTED(8, EventDescriptor.WORD_BYTES, "none"),
  /** A sequence ended with its output in this step; follows its TOKENS. */
  FINISHED(9, EventDescriptor.WORD_BYTES, "finish reason"),
  /** A sequence ended without an output: its client went away, a stop string was found, it was never scheduled. */
  ENDED(10, EventDescriptor.WORD_BYTES, "finish reason"),
  /** State of the scheduler after a step or a change. */
  SNAPSHOT(11, 0, "running, waiting, deferred requests, blocks, prefix cache tokens"),
  /** The output thread took the outputs of a step; STOPPED that follow belong to it. */
  PICK_UP(12, EventDescriptor.PICK_UP_BYTES, "step number, nanoseconds"),
  /** A stop string was found in the sequence's output of the step. */
  STOPPED(13, EventDescriptor.WORD_BYTES, "none"),
  /** The draft of a sequence was verified; precedes its TOKENS. */
  DRAFT(14, EventDescriptor.WORD_BYTES, "drafted and accepted tokens"),
  /** A sampled KV block was evicted; precedes the SNAPSHOT. */
  EVICTED(15, EventDescriptor.EVICTED_BYTES, "nanoseconds of its life, since its last use, between its last uses"),
  /** What a step worked on; precedes the SNAPSHOT. */
  DETAILS(16, EventDescriptor.DETAILS_BYTES, "step index, context and generation requests and tokens, nanoseconds"),
  /** What the request of a sequence is called; follows its QUEUED. */
  REQUEST_ID(17, 0, "UTF-8 bytes"),
  /** A captured graph ran the step, or might have; precedes the SNAPSHOT. */
  GRAPH(18, EventDescriptor.GRAPH_BYTES, "graph mode, tokens of the step and of the graph"),
  /** A STEP and the TOKENS of its only output: one decoded token. */
  STEP_OF_ONE(19, EventDescriptor.STEP_OF_ONE_BYTES, "step number, batch nanoseconds, age of the schedule, context");

  private static final EventType[] BY_ID = byId();

  private final int id;
  private final int bytes;
  private final String fields;

  EventType(int id, int bytes, String fields) {
    this.id = id;
    this.bytes = bytes;
    this.fields = fields;
  }

  /** The stable number. */
  public int id() {
    return id;
  }

  /** Length of the record in bytes; 0 if each record says its own. */
  public int bytes() {
    return bytes;
  }

  /** What a record carries beside slot and generation, in words, with units. */
  public String fields() {
    return fields;
  }

  /** The type with this number. */
  public static EventType of(int id) {
    if (id <= 0 || id >= BY_ID.length) {
      throw new IllegalArgumentException("event type " + id + " is not in [1, " + BY_ID.length + ")");
    }
    return BY_ID[id];
  }

  private static EventType[] byId() {
    EventType[] all = values();
    EventType[] result = new EventType[all.length + 1];
    for (EventType type : all) {
      if (type.id != type.ordinal() + 1) {
        throw new ExceptionInInitializerError(type + " has the number " + type.id);
      }
      result[type.id] = type;
    }
    result[0] = all[0];
    return result;
  }
}
