package dev.tacho.metrics.event;

import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

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
 *  REQUEST_ID: argument = bytes of the id
 *     0 word | 8 UTF-8 bytes, zero-padded to a multiple of 8
 *  QUEUED, 48 bytes
 *     0 word | 8 queued nanos | 16 arrival nanos | 24 prompt tokens | 28 max tokens (0: none)
 *    32 parent (0: none) | 36 n | 40 adapter name id (0: none) | 44 zero
 *  SCHEDULED, PREEMPTED, 16 bytes
 *     0 word | 8 nanos
 *  STEP, 48 to 104 bytes: argument = bits of the parts that it has, slot = outputs
 *     0 word | 8 step | 16 batch nanos | 24 schedule nanos | 32 Td | 40 Cd
 *    bit 0, if any sequence is a prefill; without it TC = Cd and the other sums are 0
 *       prefill requests | Tp | Cp | TC              32 bytes
 *    bit 1, if a window cuts any context; without it the windowed sums are the others
 *       Cp windowed | Cd windowed | TC windowed      24 bytes
 *  STEP_OF_ONE, 32 bytes: argument = 1, the new tokens; a step of one decode whose output is one token, in place of its
 *    STEP and TOKENS, if the last two fields have room
 *     0 word | 8 step | 16 batch nanos | 24 batch nanos less schedule nanos | 28 Cd
 *  PREFILL_STATS, 24 bytes
 *     0 word | 8 prompt | 12 locally cached | 16 externally cached | 20 cache creation
 *  SNAPSHOT, 32 or 48 bytes: argument = 1 if there were look-ups, else 0
 *     0 word | 8 running | 12 waiting (not deferred) | 16 deferred | 20 free blocks | 24 blocks without the null block
 *    28 looked-up requests | only if there were look-ups: 32 looked-up tokens | 40 hit tokens
 *  PICK_UP, 24 bytes
 *     0 word | 8 step | 16 iteration nanos
 *  EVICTED, 48 bytes
 *     0 word | 8 lifetime nanos | 16 idle nanos | 24, 32, 40 nanos between uses (-1: none)
 *  DETAILS, 40 bytes
 *     0 word | 8 index | 16 context requests | 20 context tokens | 24 generation requests | 28 generation tokens
 *    32 elapsed nanos
 *  GRAPH, 16 bytes: argument = graph mode
 *     0 word | 8 tokens | 12 tokens of the graph
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
  /** Length of a STEP without prefills and without a window. */
  public static final int STEP_BYTES = 48;
  /** What prefills add to a STEP. */
  public static final int STEP_PREFILL_BYTES = 32;
  /** What a window that cuts adds to a STEP. */
  public static final int STEP_WINDOW_BYTES = 24;
  /** Length of STEP_OF_ONE. */
  public static final int STEP_OF_ONE_BYTES = 32;
  /** Length of PREFILL_STATS. */
  public static final int PREFILL_STATS_BYTES = 24;
  /** Length of a SNAPSHOT without look-ups. */
  public static final int SNAPSHOT_BYTES = 32;
  /** What look-ups add to a SNAPSHOT. */
  public static final int SNAPSHOT_LOOKUP_BYTES = 16;
  /** Length of PICK_UP. */
  public static final int PICK_UP_BYTES = 24;
  /** Length of EVICTED. */
  public static final int EVICTED_BYTES = 48;
  /** Length of DETAILS. */
  public static final int DETAILS_BYTES = 40;

  /** Length of GRAPH. */
  public static final int GRAPH_BYTES = 16;

  /** The largest slot. */
  public static final int MAX_SLOT = (1 << 24) - 1;
  /** The longest draft, in tokens. */
  public static final int MAX_DRAFT_TOKENS = (1 << 8) - 1;
  /** The largest argument of a word. */
  public static final int MAX_ARGUMENT = (1 << 16) - 1;
  /** Interned strings that have a number at a time. */
  public static final int MAX_NAMES = 1024;
  /** The longest interned string, in UTF-8 bytes; longer ones are cut. */
  public static final int MAX_NAME_BYTES = 1024;

  /** The longest request id in an event, in UTF-8 bytes; longer ones are cut. */
  public static final int MAX_REQUEST_ID_BYTES = 64;
  /** A record's first word shifted right by this is its slot and generation. */
  public static final int SEQUENCE_SHIFT = 24;

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
  static final int STEP_DECODE_TOKENS = 32;
  static final int STEP_DECODE_CONTEXT = 40;
  /** Bit of the argument of a STEP with prefills. */
  static final int STEP_HAS_PREFILLS = 1;
  /** Bit of the argument of a STEP whose windowed sums differ. */
  static final int STEP_HAS_WINDOW = 2;

  static final int STEP_OF_ONE_AGE = 24;
  static final int STEP_OF_ONE_CONTEXT = 28;

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

  static final int PICK_UP_NANOS = 16;

  static final int EVICTED_IDLE = 16;
  static final int EVICTED_GAPS = 24;
  static final int EVICTED_MAX_GAPS = 3;

  static final int DETAILS_CONTEXT_REQUESTS = 16;
  static final int DETAILS_CONTEXT_TOKENS = 20;
  static final int DETAILS_GENERATION_REQUESTS = 24;
  static final int DETAILS_GENERATION_TOKENS = 28;
  static final int DETAILS_NANOS = 32;

  static final int GRAPH_TOKENS = 8;
  static final int GRAPH_PADDED = 12;

  // Fields are aligned; layouts that do not ask for it save a check with each access.
  static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private EventDescriptor() {}

  static long word(EventType type, int argument, int slot, int generation) {
    return (long) generation << 48 | (slot & 0xFF_FFFFL) << 24 | (argument & 0xFFFFL) << 8 | type.id();
  }

  /** A string in UTF-8, cut between characters after so many bytes. */
  static byte[] utf8(String text, int maxBytes) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    int length = Math.min(bytes.length, maxBytes);
    while (length < bytes.length && length > 0 && (bytes[length] & 0xC0) == 0x80) {
      length--;
    }
    return length == bytes.length ? bytes : Arrays.copyOf(bytes, length);
  }

  /** Length of a STEP with this argument. */
  static int stepBytes(int parts) {
    return STEP_BYTES + ((parts & STEP_HAS_PREFILLS) != 0 ? STEP_PREFILL_BYTES : 0)
        + ((parts & STEP_HAS_WINDOW) != 0 ? STEP_WINDOW_BYTES : 0);
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
