package dev.tacho.metrics.event;

import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.ring.RingDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/**
 * Writes events into a ring: what happened and when, as given; it reads no clock, takes no lock and allocates nothing.
 * One thread only: the engine thread or the output thread, each with a writer of its own. Nothing is visible to the
 * reader before {@link #commit}, and then all of it at once.
 *
 * <p>The engine thread commits after each change that others should see: when a step was planned that admits or
 * preempts, at the end of a step, after an abort, when a request was queued; and before each commit after which other
 * sequences run or wait than before it, it writes a {@link #snapshot}, so that a reader never counts a sequence without
 * finding it. In a step it writes {@link #step} first, then for each sequence with an output {@link #prefillStats}
 * (first output only), {@link #corrupted} (if so), {@link #tokens} and {@link #finished} (if so), then the snapshot. It
 * commits before it hands the outputs over, so that the step precedes its pick-up. The output thread writes {@link
 * #pickUp}, then {@link #stopped} for each stop string found in the outputs of that step, and commits once for both. It
 * then tells the engine, which writes {@link #ended} for the stopped sequence unless it has ended by itself. When no
 * pick-up will follow it writes {@link #noMorePickUps}.
 *
 * <p>A slot and a generation name a sequence. The slot is free for the next one, with a generation higher by one, as
 * soon as {@link #finished} or {@link #ended} was written. A disabled writer does nothing.
 */
public final class EventWriter {
  private static final EventWriter DISABLED = new EventWriter(null);

  private final @Nullable EventRing ring;
  // Words on their way into the ring; none gather while the limit is 0.
  private final long[] words;
  private int gathered;
  private int gatherLimit;
  private final HeldStep heldStep = new HeldStep();
  private final NameTable names = new NameTable();
  private long lostWhenNamed;

  private EventWriter(@Nullable EventRing ring) {
    this.ring = ring;
    this.words = new long[ring == null ? 0 : RingDescriptor.MAX_RECORD_BYTES / EventDescriptor.WORD_BYTES];
  }

  /** A writer into {@code ring}, whose producer is the thread that uses the writer. */
  public static EventWriter into(EventRing ring) {
    return new EventWriter(ring);
  }

  /** The writer that records nothing. */
  public static EventWriter disabled() {
    return DISABLED;
  }

  /** False if nothing is recorded; a caller may then save itself the work of counting. */
  public boolean enabled() {
    return ring != null;
  }

  /** Shows the reader everything written so far. */
  public void commit() {
    EventRing to = ring;
    if (to != null) {
      endGathering(to);
      to.publishRelease();
    }
  }

  /**
   * A request entered the scheduler.
   *
   * @param slot of the sequence, in [0, 2^24)
   * @param generation of the slot
   * @param nanos now
   * @param arrivalNanos when the request came to the engine, same clock
   * @param promptTokens length of the prompt
   * @param maxTokens limit of generated tokens that the caller gave, 0 if none
   * @param parent a number of the request that this sequence is one of n of, unique among the live ones; 0 if n is 1
   * @param n sequences of the request
   * @param adapter a {@link #name} of the adapter, 0 if none
   */
  public void queued(int slot, int generation, long nanos, long arrivalNanos, int promptTokens, int maxTokens,
      int parent, int n, int adapter) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    long at = claim(to, EventDescriptor.QUEUED_BYTES);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      put(memory, at, EventDescriptor.word(EventType.QUEUED, 0, slot, generation));
      put(memory, at + EventDescriptor.FIRST, nanos);
      put(memory, at + EventDescriptor.QUEUED_ARRIVAL, arrivalNanos);
      put(memory, at + EventDescriptor.QUEUED_PROMPT, promptTokens);
      put(memory, at + EventDescriptor.QUEUED_MAX_TOKENS, maxTokens);
      put(memory, at + EventDescriptor.QUEUED_PARENT, parent);
      put(memory, at + EventDescriptor.QUEUED_N, n);
      put(memory, at + EventDescriptor.QUEUED_ADAPTER, adapter);
      put(memory, at + EventDescriptor.QUEUED_ZERO, 0);
    }
  }

  /**
   * What the request of a sequence is called, for exemplars; right after {@link #queued}, if at all.
   *
   * @param slot of the sequence
   * @param generation of the slot
   * @param id made by the thread that submitted the request
   */
  public void requestId(int slot, int generation, RequestId id) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    int bytes = id.bytes();
    long at = claim(to, EventDescriptor.WORD_BYTES + ((bytes + 7) & ~7));
    if (at >= 0) {
      put(to.memory(), at, EventDescriptor.word(EventType.REQUEST_ID, bytes, slot, generation));
      id.write(to.memory(), at + EventDescriptor.FIRST);
    }
  }

  /**
   * A request moved into the running list.
   *
   * @param slot of the sequence
   * @param generation of the slot
   * @param nanos start of the schedule call, shared by all requests of the step
   */
  public void scheduled(int slot, int generation, long nanos) {
    stamp(EventType.SCHEDULED, slot, generation, nanos);
  }

  /**
   * A running request lost its place and its blocks.
   *
   * @param slot of the sequence
   * @param generation of the slot
   * @param nanos start of the schedule call
   */
  public void preempted(int slot, int generation, long nanos) {
    stamp(EventType.PREEMPTED, slot, generation, nanos);
  }

  /**
   * A step's outputs were built.
   *
   * @param step the step's number; increases
   * @param batchNanos when they were built: the one reading of the clock in a step
   * @param scheduleNanos start of the schedule call that planned the step
   * @param outputs sequences with an output in the step, in [0, 2^24); if 0, no pick-up follows
   * @param shape sums over the sequences that the step computed
   */
  public void step(long step, long batchNanos, long scheduleNanos, int outputs, StepShape shape) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    endGathering(to);
    if (heldStep.hold(step, batchNanos, scheduleNanos, outputs, shape)) {
      return;
    }
    int parts = shape.parts();
    long at = to.claim(EventDescriptor.stepBytes(parts), 1);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      put(memory, at, EventDescriptor.word(EventType.STEP, parts, outputs, 0));
      put(memory, at + EventDescriptor.FIRST, step);
      put(memory, at + EventDescriptor.STEP_BATCH, batchNanos);
      put(memory, at + EventDescriptor.STEP_SCHEDULE, scheduleNanos);
      shape.write(memory, at, parts);
    }
  }

  /**
   * Where a prompt came from, fixed when the sequence was first scheduled, written before its first {@link #tokens}.
   *
   * @param slot of the sequence
   * @param generation of the slot
   * @param promptTokens length of the prompt
   * @param localCachedTokens tokens found in the prefix cache
   * @param externalCachedTokens tokens that a KV connector supplied
   * @param cacheCreationTokens prompt tokens that are in the prefix cache now and were not before
   */
  public void prefillStats(int slot, int generation, int promptTokens, int localCachedTokens, int externalCachedTokens,
      int cacheCreationTokens) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    long at = claim(to, EventDescriptor.PREFILL_STATS_BYTES);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      put(memory, at, EventDescriptor.word(EventType.PREFILL_STATS, 0, slot, generation));
      put(memory, at + EventDescriptor.PREFILL_PROMPT, promptTokens);
      put(memory, at + EventDescriptor.PREFILL_LOCAL, localCachedTokens);
      put(memory, at + EventDescriptor.PREFILL_EXTERNAL, externalCachedTokens);
      put(memory, at + EventDescriptor.PREFILL_CREATION, cacheCreationTokens);
    }
  }

  /**
   * An output of a sequence in the step written last.
   *
   * @param slot of the sequence
   * @param generation of the slot
   * @param count new tokens, in [0, 65535]
   */
  public void tokens(int slot, int generation, int count) {
    word(EventType.TOKENS, count, slot, generation);
  }

  /** The output that follows for this sequence was computed from logits with a NaN. */
  public void corrupted(int slot, int generation) {
    word(EventType.CORRUPTED, 0, slot, generation);
  }

  /**
   * The draft of a sequence was verified in the step written last.
   *
   * @param slot of the sequence
   * @param generation of the slot
   * @param drafted tokens drafted, those that a grammar refused left out, in [0, 255]
   * @param accepted tokens accepted, in [0, 255]
   */
  public void draft(int slot, int generation, int drafted, int accepted) {
    word(EventType.DRAFT, drafted << 8 | accepted, slot, generation);
  }

  /**
   * A sampled KV block was evicted; before the {@link #snapshot} of the step.
   *
   * @param lifetimeNanos allocation to eviction
   * @param idleNanos last use to eviction
   * @param firstGapNanos time between two of its last uses, -1 if there is none; so are the other two
   */
  public void evicted(long lifetimeNanos, long idleNanos, long firstGapNanos, long secondGapNanos, long thirdGapNanos) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    long at = claim(to, EventDescriptor.EVICTED_BYTES);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      put(memory, at, EventDescriptor.word(EventType.EVICTED, 0, 0, 0));
      put(memory, at + EventDescriptor.FIRST, lifetimeNanos);
      put(memory, at + EventDescriptor.EVICTED_IDLE, idleNanos);
      put(memory, at + EventDescriptor.EVICTED_GAPS, firstGapNanos);
      put(memory, at + EventDescriptor.EVICTED_GAPS + 8, secondGapNanos);
      put(memory, at + EventDescriptor.EVICTED_GAPS + 16, thirdGapNanos);
    }
  }

  /**
   * What a step worked on; before its {@link #snapshot}. Only if somebody asked for it.
   *
   * @param index number of the step
   * @param contextRequests sequences that are new in the step or have no output yet
   * @param contextTokens tokens of theirs that it computed
   * @param generationRequests the other sequences
   * @param generationTokens their tokens
   * @param nanos time that the model took
   */
  public void details(long index, int contextRequests, int contextTokens, int generationRequests,
      int generationTokens, long nanos) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    long at = claim(to, EventDescriptor.DETAILS_BYTES);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      put(memory, at, EventDescriptor.word(EventType.DETAILS, 0, 0, 0));
      put(memory, at + EventDescriptor.FIRST, index);
      put(memory, at + EventDescriptor.DETAILS_CONTEXT_REQUESTS, contextRequests);
      put(memory, at + EventDescriptor.DETAILS_CONTEXT_TOKENS, contextTokens);
      put(memory, at + EventDescriptor.DETAILS_GENERATION_REQUESTS, generationRequests);
      put(memory, at + EventDescriptor.DETAILS_GENERATION_TOKENS, generationTokens);
      put(memory, at + EventDescriptor.DETAILS_NANOS, nanos);
    }
  }

  /**
   * A captured graph ran a step, or might have; before its {@link #snapshot}. Only if somebody asked for it.
   *
   * @param tokens of the step
   * @param paddedTokens for which the graph was captured, at least {@code tokens}
   * @param mode kind of the graph
   */
  public void graph(int tokens, int paddedTokens, GraphMode mode) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    long at = claim(to, EventDescriptor.GRAPH_BYTES);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      put(memory, at, EventDescriptor.word(EventType.GRAPH, mode.id(), 0, 0));
      put(memory, at + EventDescriptor.GRAPH_TOKENS, tokens);
      put(memory, at + EventDescriptor.GRAPH_PADDED, paddedTokens);
    }
  }

  /**
   * A sequence ended with its output in the step written last; one that wrote no {@link #tokens} there (its step
   * failed) counts as an output without tokens. Its times are observed: only for sequences that were scheduled; the
   * others end with {@link #ended}.
   */
  public void finished(int slot, int generation, FinishReason reason) {
    word(EventType.FINISHED, reason.id(), slot, generation);
  }

  /**
   * A sequence ended without an output: aborted by its client or by the engine's closing, or failed before it was
   * scheduled. It counts under its reason, and no time is observed. Also if its last output held a stop string: it then
   * counts as {@link #finished} there, whatever the reason given here.
   */
  public void ended(int slot, int generation, FinishReason reason) {
    word(EventType.ENDED, reason.id(), slot, generation);
  }

  /**
   * State of the scheduler, after a step and after whatever changed it between steps. The last three arguments are what
   * happened since the snapshot before.
   *
   * @param running size of the running list
   * @param waiting waiting requests that nothing but capacity holds up
   * @param deferred waiting requests that were passed over
   * @param freeBlocks free KV blocks
   * @param blocks KV blocks without the null block
   * @param lookups requests that looked up the prefix cache when they were admitted
   * @param queriedTokens tokens of those requests
   * @param hitTokens tokens that they found
   */
  public void snapshot(int running, int waiting, int deferred, int freeBlocks, int blocks, int lookups,
      long queriedTokens, long hitTokens) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    int looked = lookups == 0 ? 0 : 1;
    long at = claim(to, EventDescriptor.SNAPSHOT_BYTES + looked * EventDescriptor.SNAPSHOT_LOOKUP_BYTES);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      put(memory, at, EventDescriptor.word(EventType.SNAPSHOT, looked, 0, 0));
      put(memory, at + EventDescriptor.SNAPSHOT_RUNNING, running);
      put(memory, at + EventDescriptor.SNAPSHOT_WAITING, waiting);
      put(memory, at + EventDescriptor.SNAPSHOT_DEFERRED, deferred);
      put(memory, at + EventDescriptor.SNAPSHOT_FREE_BLOCKS, freeBlocks);
      put(memory, at + EventDescriptor.SNAPSHOT_BLOCKS, blocks);
      put(memory, at + EventDescriptor.SNAPSHOT_LOOKUPS, lookups);
      if (looked != 0) {
        put(memory, at + EventDescriptor.SNAPSHOT_QUERIES, queriedTokens);
        put(memory, at + EventDescriptor.SNAPSHOT_HITS, hitTokens);
      }
    }
  }

  /**
   * The output thread took the outputs of a step, before it looked at them.
   *
   * @param step the step's number
   * @param nanos now
   */
  public void pickUp(long step, long nanos) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    long at = claim(to, EventDescriptor.PICK_UP_BYTES);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      put(memory, at, EventDescriptor.word(EventType.PICK_UP, 0, 0, 0));
      put(memory, at + EventDescriptor.FIRST, step);
      put(memory, at + EventDescriptor.PICK_UP_NANOS, nanos);
    }
  }

  /** Nobody will pick up a step any more: those that follow count as picked up now. */
  public void noMorePickUps(long nanos) {
    pickUp(Long.MAX_VALUE, nanos);
  }

  /** A stop string was found in the sequence's output of the step picked up last: it ended there, with STOP. */
  public void stopped(int slot, int generation) {
    word(EventType.STOPPED, 0, slot, generation);
  }

  /**
   * The number that stands for a string in the next {@link #queued}, told to the reader before its first use. Of more
   * than {@value EventDescriptor#MAX_NAMES} names those used last keep their numbers; another's number may stand for a
   * new name, so it is asked for anew with each use. Allocates when a name gets a number. The engine thread's writer
   * alone has names.
   *
   * @param name cut after {@value EventDescriptor#MAX_NAME_BYTES} bytes of UTF-8
   * @return a number in [1, {@value EventDescriptor#MAX_NAMES}]; 0 if nothing is recorded
   */
  public int name(String name) {
    EventRing to = ring;
    if (to == null) {
      return 0;
    }
    if (to.lostRecords() != lostWhenNamed) {
      // The record that told a name may be among the lost ones: tell all of them again.
      lostWhenNamed = to.lostRecords();
      names.forEach((text, id) -> tell(to, text, id));
    }
    int known = names.find(name);
    if (known != NameTable.NONE) {
      return known;
    }
    int id = names.add(name);
    tell(to, name, id);
    return id;
  }

  private void tell(EventRing to, String name, int id) {
    byte[] bytes = EventDescriptor.utf8(name, EventDescriptor.MAX_NAME_BYTES);
    int length = bytes.length;
    int padded = (length + 7) & ~7;
    long at = claim(to, EventDescriptor.WORD_BYTES + padded);
    if (at >= 0) {
      MemorySegment memory = to.memory();
      put(memory, at, EventDescriptor.word(EventType.NAME, length, id, 0));
      MemorySegment text = memory.asSlice(at + EventDescriptor.FIRST, padded);
      text.fill((byte) 0);
      MemorySegment.copy(bytes, 0, text, ValueLayout.JAVA_BYTE, 0, length);
    }
  }

  /**
   * The first word after a longer record goes into the ring at once. Those that follow gather in an array, as there may
   * be hundreds in a step, and go into the ring together.
   */
  private void word(EventType type, int argument, int slot, int generation) {
    long word = EventDescriptor.word(type, argument, slot, generation);
    int at = gathered;
    if (at < gatherLimit) {
      words[at] = word;
      gathered = at + 1;
    } else {
      firstWord(word);
    }
  }

  private void firstWord(long word) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    if (heldStep.isHeld() && HeldStep.isCompletedBy(word)) {
      heldStep.writeWithToken(to, word);
      return;
    }
    endGathering(to);
    gatherLimit = words.length;
    long at = to.claim(EventDescriptor.WORD_BYTES, 1);
    if (at >= 0) {
      put(to.memory(), at, word);
    }
  }

  /** Room for a longer record, after the words before it. */
  private long claim(EventRing to, int bytes) {
    endGathering(to);
    return to.claim(bytes, 1);
  }

  private void endGathering(EventRing to) {
    if (heldStep.isHeld()) {
      heldStep.writeAlone(to);
    }
    flush(to);
    gatherLimit = 0;
  }

  private void flush(EventRing to) {
    int count = gathered;
    if (count == 0) {
      return;
    }
    gathered = 0;
    long at = to.claim(count * EventDescriptor.WORD_BYTES, count);
    if (at >= 0) {
      MemorySegment.copy(words, 0, to.memory(), EventDescriptor.LONG, at, count);
    }
  }

  private void stamp(EventType type, int slot, int generation, long nanos) {
    EventRing to = ring;
    if (to == null) {
      return;
    }
    long at = claim(to, EventDescriptor.STAMP_BYTES);
    if (at >= 0) {
      put(to.memory(), at, EventDescriptor.word(type, 0, slot, generation));
      put(to.memory(), at + EventDescriptor.FIRST, nanos);
    }
  }

  private static void put(MemorySegment memory, long at, long value) {
    memory.set(EventDescriptor.LONG, at, value);
  }

  private static void put(MemorySegment memory, long at, int value) {
    memory.set(EventDescriptor.INT, at, value);
  }
}
