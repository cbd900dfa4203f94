package dev.tacho.metrics.event;

import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Byte layout of event records, little-endian, each a multiple of 8 bytes. Every record begins with one word:
 *
 * <pre>
 *   63      48 47                  24 23      8 7    0
 *  +----------+----------------------+---------+------+
 *  |generation|        slot          | argument| type |     TOKENS     argument = new tokens
 *  +----------+----------------------+---------+------+     FINISHED, ENDED   argument = finish reason
 *                                                           CORRUPTED, STOPPED argument = 0
 *                                                           DRAFT argument = drafted * 256 + accepted
 *  NAME: argument = bytes of the string, slot = name id
 *     0 word | 8 UTF-8 bytes, zero-padded to a multiple of 8
 *  QUEUED, 48 bytes
 *     0 word | 8 queued nanos | 16 arrival nanos | 24 prompt tokens | 28 max tokens (0: none)
 *    32 parent (0: none) | 36 n | 40 adapter name id (0: none) | 44 zero
 *  SCHEDULED, PREEMPTED, 16 bytes
 *     0 word | 8 nanos
 *  STEP, 104 bytes
 *     0 word | 8 step | 16 batch nanos | 24 schedule nanos | 32 outputs | 36 prefill requests
 *    40 Tp | 48 Td | 56 Cp | 64 Cd | 72 TC | 80 Cp windowed | 88 Cd windowed | 96 TC windowed
 *  PREFILL_STATS, 24 bytes
 *     0 word | 8 prompt | 12 locally cached | 16 externally cached | 20 cache creation
 *  SNAPSHOT, 56 bytes
 *     0 word | 8 running | 12 waiting (not deferred) | 16 deferred | 20 free blocks | 24 blocks without the null block
 *    28 looked-up requests | 32 looked-up tokens | 40 hit tokens | 48 zero
 *  PICK_UP, 24 bytes
 *     0 word | 8 step | 16 iteration nanos
 *  EVICTED, 48 bytes
 *     0 word | 8 lifetime nanos | 16 idle nanos | 24, 32, 40 nanos between uses (-1: none)
 *  DETAILS, 40 bytes
 *     0 word | 8 index | 16 context requests | 20 context tokens | 24 generation requests | 28 generation tokens
 *    32 elapsed nanos
 * </pre>
 *
 * <p>Fields of 4 bytes at multiples of 4, of 8 bytes at multiples of 8. STEP sums: T tokens, C contexts after the step,
 * TC their products; p of prefills, d of decodes (see {@link StepShape}). A slot is reused with the next generation;
 * records keep its low 16 bits.
 */
public final class EventDescriptor {
  /** Length of records that are one word. */
  public static final int WORD_BYTES = 8;
  /** Length of SCHEDULED and PREEMPTED. */
  public static final int STAMP_BYTES = 16;
  /** Length of QUEUED. */
  public static final int QUEUED_BYTES = 48;
  /** Length of STEP. */
  public static final int STEP_BYTES = 104;
  /** Length of PREFILL_STATS. */
  public static final int PREFILL_STATS_BYTES = 24;
  /** Length of SNAPSHOT. */
  public static final int SNAPSHOT_BYTES = 56;
  /** Length of PICK_UP. */
  public static final int PICK_UP_BYTES = 24;
  /** Length of EVICTED. */
  public static final int EVICTED_BYTES = 48;
  /** Length of DETAILS. */
  public static final int DETAILS_BYTES = 40;

  /** The largest slot. */
  public static final int MAX_SLOT = (1 << 24) - 1;
  /** The longest draft, in tokens. */
  public static final int MAX_DRAFT_TOKENS = (1 << 8) - 1;
  /** The largest argument of a word. */
  public static final int MAX_ARGUMENT = (1 << 16) - 1;
  /** The longest interned string, in UTF-8 bytes; longer ones are cut. */
  public static final int MAX_NAME_BYTES = 1024;

  /** Offset of the stamp in QUEUED, SCHEDULED and PREEMPTED, and of the step number in STEP and PICK_UP. */
  static final int FIRST = 8;

  static final int QUEUED_ARRIVAL = 16;
  static final int QUEUED_PROMPT = 24;
  static final int QUEUED_MAX_TOKENS = 28;
  static final int QUEUED_PARENT = 32;
  static final int QUEUED_N = 36;
  static final int QUEUED_ADAPTER = 40;
  static final int QUEUED_ZERO = 44;

  static final int STEP_BATCH = 16;
  static final int STEP_SCHEDULE = 24;
  static final int STEP_OUTPUTS = 32;
  static final int STEP_PREFILL_REQUESTS = 36;
  static final int STEP_PREFILL_TOKENS = 40;
  static final int STEP_DECODE_TOKENS = 48;
  static final int STEP_PREFILL_CONTEXT = 56;
  static final int STEP_DECODE_CONTEXT = 64;
  static final int STEP_PRODUCT = 72;
  static final int STEP_PREFILL_CONTEXT_WINDOWED = 80;
  static final int STEP_DECODE_CONTEXT_WINDOWED = 88;
  static final int STEP_PRODUCT_WINDOWED = 96;

  static final int PREFILL_PROMPT = 8;
  static final int PREFILL_LOCAL = 12;
  static final int PREFILL_EXTERNAL = 16;
  static final int PREFILL_CREATION = 20;

  static final int SNAPSHOT_RUNNING = 8;
  static final int SNAPSHOT_WAITING = 12;
  static final int SNAPSHOT_DEFERRED = 16;
  static final int SNAPSHOT_FREE_BLOCKS = 20;
  static final int SNAPSHOT_BLOCKS = 24;
  static final int SNAPSHOT_LOOKUPS = 28;
  static final int SNAPSHOT_QUERIES = 32;
  static final int SNAPSHOT_HITS = 40;
  static final int SNAPSHOT_ZERO = 48;

  static final int PICK_UP_NANOS = 16;

  static final int EVICTED_IDLE = 16;
  static final int EVICTED_GAPS = 24;
  static final int EVICTED_MAX_GAPS = 3;

  static final int DETAILS_CONTEXT_REQUESTS = 16;
  static final int DETAILS_CONTEXT_TOKENS = 20;
  static final int DETAILS_GENERATION_REQUESTS = 24;
  static final int DETAILS_GENERATION_TOKENS = 28;
  static final int DETAILS_NANOS = 32;

  static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private EventDescriptor() {}

  static long word(EventType type, int argument, int slot, int generation) {
    return (long) generation << 48 | (slot & 0xFF_FFFFL) << 24 | (argument & 0xFFFFL) << 8 | type.id();
  }

  /** The type's number in a record's first word. */
  public static int typeId(long word) {
    return (int) word & 0xFF;
  }

  /** The argument in a record's first word. */
  public static int argument(long word) {
    return (int) (word >>> 8) & 0xFFFF;
  }

  /** The slot in a record's first word. */
  public static int slot(long word) {
    return (int) (word >>> 24) & 0xFF_FFFF;
  }

  /** The low 16 bits of the generation in a record's first word. */
  public static int generation(long word) {
    return (int) (word >>> 48);
  }
}
