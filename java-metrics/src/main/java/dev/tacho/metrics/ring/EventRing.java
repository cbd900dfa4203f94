package dev.tacho.metrics.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * Carries records from one producer thread to one consumer thread through memory outside the heap, so that the producer
 * never waits, locks or allocates. The layout is drawn in {@link RingDescriptor}.
 *
 * <p>Producer: {@link #claim}, fill the bytes, any number of times, then {@link #publishRelease}: the consumer sees all
 * of it or nothing. Consumer: {@link #tailAcquire}, {@link #drain} and {@link #prepareSpare}; whichever thread holds
 * the consumer's lock is the consumer.
 *
 * <p>Full: the producer goes on in the larger spare segment that the consumer keeps ready, which counts in {@link
 * #fullCount}. With no spare (the consumer stands still, or the ring's limit is reached) the oldest unread segment is
 * dropped, which counts in {@link #lostRecords}; if the consumer is reading at that moment, the new record is dropped
 * instead. A segment left behind goes back to its {@link SegmentSource}.
 *
 * <p>What the producer writes with each record and what the consumer writes with each drain lie in cache lines of their
 * own: the producer's in an array with room on both sides, the consumer's in the control block.
 */
public final class EventRing {
  /** Size of the first segment, in bytes, unless told otherwise. */
  public static final int DEFAULT_FIRST_BYTES = 1 << 20;
  /** Limit of all segments together, in bytes, unless told otherwise. */
  public static final int DEFAULT_MAX_BYTES = 64 << 20;

  private static final long FREE = 0;
  private static final long TAKEN = 1;
  /** The consumer lets the producer have its way after this many bytes. */
  private static final int CHUNK_BYTES = 1 << 16;

  private static final ValueLayout.OfLong WORD = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle CELL = WORD.varHandle();
  private static final VarHandle SPARE;
  private static final VarHandle NEXT;

  // The producer's numbers in its array, two cache lines from either end.
  /** Where in the segment the next record begins. */
  private static final int OFFSET = 16;
  private static final int RECORDS = 17;
  /** Up to this offset records can be claimed without another look: end of the segment or of the room in it. */
  private static final int RUN_END = 18;
  /** Position of the segment's byte 0 in this lap. */
  private static final int LAP = 19;
  private static final int PRODUCER_LONGS = 36;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      SPARE = lookup.findVarHandle(EventRing.class, "spare", Segment.class);
      NEXT = lookup.findVarHandle(Segment.class, "next", Segment.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final SegmentSource source;
  private final int firstBytes;
  private final long maxBytes;
  private final MemorySegment control;

  // The producer's own; what changes with each record is in the array.
  private final long[] producer = new long[PRODUCER_LONGS];
  private Segment writing;
  private MemorySegment memory;
  private long knownHead;
  private long full;
  private long lost;

  // Of whoever holds the owner cell.
  private Segment first;

  // The consumer's own.
  private long totalBytes;

  private volatile @Nullable Segment spare;

  /** A ring of the default sizes outside the heap. */
  public EventRing() {
    this(DEFAULT_FIRST_BYTES, DEFAULT_MAX_BYTES, SegmentSource.OFF_HEAP);
  }

  /**
   * A ring in memory of someone else.
   *
   * @param firstBytes size of the first segment, a power of two
   * @param maxBytes limit of all segments together; at least three times the first
   * @param source where the memory comes from
   */
  public EventRing(int firstBytes, int maxBytes, SegmentSource source) {
    if (firstBytes < RingDescriptor.MIN_SEGMENT_BYTES || Integer.bitCount(firstBytes) != 1) {
      throw new IllegalArgumentException("first segment of " + firstBytes + " bytes: must be a power of two from "
          + RingDescriptor.MIN_SEGMENT_BYTES);
    }
    if (maxBytes < 3L * firstBytes) {
      throw new IllegalArgumentException("limit of " + maxBytes + " bytes: must be at least 3 times the first segment ("
          + firstBytes + " bytes)");
    }
    this.source = source;
    this.firstBytes = firstBytes;
    this.maxBytes = maxBytes;
    this.control = needed(source.allocate(RingDescriptor.CONTROL_BYTES));
    this.writing = new Segment(needed(source.allocate(RingDescriptor.SEGMENT_HEADER_BYTES + (long) firstBytes)));
    this.totalBytes = firstBytes;
    this.memory = writing.memory;
    this.first = writing;
    begin(writing);
    prepareSpare();
  }

  private static MemorySegment needed(@Nullable MemorySegment memory) {
    if (memory == null) {
      throw new IllegalStateException("no memory for a ring");
    }
    return memory;
  }

  // ---- producer

  /**
   * Takes room for records that lie one after another; {@link #memory} is where they lie.
   *
   * @param bytes length of all, a multiple of 8, at most {@link RingDescriptor#MAX_RECORD_BYTES}
   * @param count how many they are
   * @return the first one's offset in {@link #memory}, or -1 if there is no room: they are lost and counted
   */
  public long claim(int bytes, int count) {
    long[] own = producer;
    long offset = own[OFFSET];
    long end = offset + bytes;
    if (end > own[RUN_END]) {
      return claimBeyondTheRun(bytes, count);
    }
    own[OFFSET] = end;
    own[RECORDS] += count;
    return offset;
  }

  /** The memory that the last {@link #claim} was in. */
  public MemorySegment memory() {
    return memory;
  }

  /** Shows the consumer every record claimed so far. One release store. */
  public void publishRelease() {
    CELL.setRelease(control, (long) RingDescriptor.TAIL, position());
  }

  private long claimBeyondTheRun(int bytes, int count) {
    long needed = needed(bytes);
    if (position() + needed > roomEnd()) {
      if (!makeRoom(needed, count)) {
        return -1;
      }
      needed = needed(bytes);
    }
    if (producer[OFFSET] + bytes > memory.byteSize()) {
      if (needed > bytes) {
        memory.set(WORD, producer[OFFSET], RingDescriptor.PADDING);
      }
      beginLap(producer[LAP] + memory.byteSize());
    }
    findRunEnd();
    long offset = producer[OFFSET];
    producer[OFFSET] += bytes;
    producer[RECORDS] += count;
    return offset;
  }

  private long position() {
    return producer[LAP] + producer[OFFSET];
  }

  /** Bytes to the end of a record that does not cross the end of the segment. */
  private long needed(int bytes) {
    long untilEnd = memory.byteSize() - producer[OFFSET];
    return bytes <= untilEnd ? bytes : untilEnd + bytes;
  }

  private long roomEnd() {
    return Math.max(knownHead, writing.base) + memory.byteSize();
  }

  private void findRunEnd() {
    producer[RUN_END] = Math.min(memory.byteSize(), roomEnd() - producer[LAP]);
  }

  private boolean makeRoom(long needed, int count) {
    knownHead = headAcquire();
    if (position() + needed <= roomEnd()) {
      return true;
    }
    full++;
    CELL.setRelease(control, (long) RingDescriptor.FULL, full);
    Segment larger = (Segment) SPARE.getAndSet(this, (Segment) null);
    if (larger != null) {
      continueIn(larger);
      return true;
    }
    publishRelease();
    if (!CELL.compareAndSet(control, (long) RingDescriptor.OWNER, FREE, TAKEN)) {
      lose(count);
      return false;
    }
    dropOldest();
    release();
    knownHead = headAcquire();
    return position() + needed <= roomEnd();
  }

  private void continueIn(Segment segment) {
    segment.next = null;
    Segment before = writing;
    writing = segment;
    memory = segment.memory;
    begin(segment);
    NEXT.setRelease(before, segment);
  }

  /** The producer begins a segment at its position. */
  private void begin(Segment segment) {
    segment.base = position();
    segment.firstRecord = producer[RECORDS];
    CELL.setRelease(segment.header, (long) RingDescriptor.SEGMENT_BASE, segment.base + 1);
    beginLap(segment.base);
    findRunEnd();
  }

  /** Told before the first byte of the lap before is overwritten, so that another process can see that it was. */
  private void beginLap(long position) {
    producer[LAP] = position;
    producer[OFFSET] = 0;
    CELL.setRelease(control, (long) RingDescriptor.LAP, position);
    VarHandle.storeStoreFence();
  }

  private void dropOldest() {
    Segment oldest = first;
    Segment second = oldest.next;
    if (second == null) {
      lose(producer[RECORDS] - readRecords());
      setHead(position(), producer[RECORDS]);
      return;
    }
    lose(second.firstRecord - readRecords());
    setHead(second.base, second.firstRecord);
    first = second;
    continueIn(oldest);
  }

  private void lose(long count) {
    lost += count;
    CELL.setRelease(control, (long) RingDescriptor.LOST, lost);
  }

  // ---- consumer

  /** End of what the producer has published, as an absolute position. */
  public long tailAcquire() {
    return (long) CELL.getAcquire(control, (long) RingDescriptor.TAIL);
  }

  /** Start of what is unread, as an absolute position. */
  public long headAcquire() {
    return (long) CELL.getAcquire(control, (long) RingDescriptor.HEAD);
  }

  /**
   * Reads records up to a position, or to the first that {@code consumer} does not want yet. If {@code consumer}
   * throws, the records before the failed one are read and the failed one is still there: {@link #discard} gets past
   * it.
   *
   * @param consumer takes each record
   * @param limit an earlier {@link #tailAcquire}
   * @return the number of records read
   */
  public long drain(RecordConsumer consumer, long limit) {
    takeOwnership();
    long before = readRecords();
    release();
    long after;
    boolean more = true;
    do {
      takeOwnership();
      try {
        more = drainChunk(consumer, limit);
        after = readRecords();
      } finally {
        release();
      }
    } while (more);
    return after - before;
  }

  /**
   * Drops every record up to a position unread.
   *
   * @param limit an earlier {@link #tailAcquire}
   */
  public void discard(long limit) {
    takeOwnership();
    try {
      if (headAcquire() < limit) {
        Segment next = (Segment) NEXT.getAcquire(first);
        while (next != null && next.base <= limit) {
          leave(next);
          next = (Segment) NEXT.getAcquire(first);
        }
        setHead(limit, readRecords());
      }
    } finally {
      release();
    }
  }

  /** Sees to it that the producer finds a spare segment, twice as large as the last if the limit allows it. */
  public void prepareSpare() {
    if (spare != null) {
      return;
    }
    takeOwnership();
    long wanted;
    try {
      Segment last = first;
      for (Segment next = (Segment) NEXT.getAcquire(last); next != null; next = (Segment) NEXT.getAcquire(last)) {
        last = next;
      }
      wanted = Math.min(2 * last.memory.byteSize(), Long.highestOneBit(Math.max(1, maxBytes - totalBytes)));
    } finally {
      release();
    }
    if (wanted >= RingDescriptor.MIN_SEGMENT_BYTES) {
      MemorySegment whole = source.allocate(RingDescriptor.SEGMENT_HEADER_BYTES + wanted);
      if (whole != null) {
        totalBytes += wanted;
        SPARE.setRelease(this, new Segment(whole));
      }
    }
  }

  /** Size of the first segment, in bytes; no later one is smaller. Any thread. */
  public int firstBytes() {
    return firstBytes;
  }

  /** Bytes of the segments, the spare one included. For who drains. */
  public long bytes() {
    return totalBytes;
  }

  /** Times that the producer found its segment full. Any thread. */
  public long fullCount() {
    return (long) CELL.getAcquire(control, (long) RingDescriptor.FULL);
  }

  /** Records that were dropped unread. Any thread. */
  public long lostRecords() {
    return (long) CELL.getAcquire(control, (long) RingDescriptor.LOST);
  }

  private boolean drainChunk(RecordConsumer consumer, long limit) {
    long at = headAcquire();
    long end = Math.min(limit, at + CHUNK_BYTES);
    long read = readRecords();
    Segment segment = first;
    long sizeMask = segment.memory.byteSize() - 1;
    boolean wanted = true;
    try {
      while (at < end) {
        Segment next = (Segment) NEXT.getAcquire(segment);
        if (next != null && next.base == at) {
          leave(next);
          segment = next;
          sizeMask = segment.memory.byteSize() - 1;
        }
        long offset = (at - segment.base) & sizeMask;
        if (segment.memory.get(WORD, offset) == RingDescriptor.PADDING) {
          at += sizeMask + 1 - offset;
          continue;
        }
        int bytes = consumer.consume(segment.memory, offset);
        if (bytes == RecordConsumer.NOT_YET) {
          wanted = false;
          break;
        }
        at += bytes;
        read++;
      }
    } finally {
      setHead(at, read);
    }
    return wanted && at < limit;
  }

  private void leave(Segment next) {
    Segment left = first;
    totalBytes -= left.memory.byteSize();
    first = next;
    CELL.setRelease(left.header, (long) RingDescriptor.SEGMENT_BASE, RingDescriptor.UNUSED);
    source.release(left.whole);
  }

  private long readRecords() {
    return control.get(WORD, RingDescriptor.READ_RECORDS);
  }

  private void setHead(long head, long readRecords) {
    control.set(WORD, RingDescriptor.READ_RECORDS, readRecords);
    CELL.setRelease(control, (long) RingDescriptor.HEAD, head);
  }

  private void takeOwnership() {
    while (!CELL.compareAndSet(control, (long) RingDescriptor.OWNER, FREE, TAKEN)) {
      Thread.onSpinWait();
    }
  }

  private void release() {
    CELL.setRelease(control, (long) RingDescriptor.OWNER, FREE);
  }

  /** A piece of the ring's memory and the positions that it covers. */
  private static final class Segment {
    final MemorySegment whole;
    final MemorySegment header;
    final MemorySegment memory;
    long base;
    long firstRecord;
    volatile @Nullable Segment next;

    Segment(MemorySegment whole) {
      this.whole = whole;
      header = whole.asSlice(0, RingDescriptor.SEGMENT_HEADER_BYTES);
      memory = whole.asSlice(RingDescriptor.SEGMENT_HEADER_BYTES);
      header.set(WORD, RingDescriptor.SEGMENT_CAPACITY, memory.byteSize());
    }
  }
}
