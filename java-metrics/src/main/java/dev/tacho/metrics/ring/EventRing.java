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
 * instead. A segment left behind is freed by the garbage collector once the consumer has gone on.
 */
public final class EventRing {
  /** Size of the first segment, in bytes, unless told otherwise. */
  public static final int DEFAULT_FIRST_BYTES = 1 << 20;
  /** Limit of all segments together, in bytes, unless told otherwise. */
  public static final int DEFAULT_MAX_BYTES = 64 << 20;

  private static final int FREE = 0;
  private static final int TAKEN = 1;
  /** The consumer lets the producer have its way after this many bytes. */
  private static final int CHUNK_BYTES = 1 << 16;

  private static final ValueLayout.OfLong WORD = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle CELL = WORD.varHandle();
  private static final VarHandle OWNER;
  private static final VarHandle SPARE;
  private static final VarHandle NEXT;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      OWNER = lookup.findVarHandle(EventRing.class, "owner", int.class);
      SPARE = lookup.findVarHandle(EventRing.class, "spare", Segment.class);
      NEXT = lookup.findVarHandle(Segment.class, "next", Segment.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final SegmentSource source;
  private final long maxBytes;
  private final MemorySegment control;

  // The producer's own.
  private Segment writing;
  private MemorySegment memory;
  private long base;
  private long mask;
  private long position;
  private long records;
  private long knownHead;
  private long full;
  private long lost;

  // Of whoever holds the owner flag.
  private Segment first;
  private long readRecords;

  // The consumer's own.
  private long totalBytes;

  @SuppressWarnings("UnusedVariable") // through OWNER
  private volatile int owner;

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
    this.maxBytes = maxBytes;
    this.control = source.allocate(RingDescriptor.CONTROL_BYTES);
    this.writing = new Segment(source.allocate(firstBytes));
    this.memory = writing.memory;
    this.mask = firstBytes - 1L;
    this.first = writing;
    this.totalBytes = firstBytes;
    prepareSpare();
  }

  // ---- producer

  /**
   * Takes room for a record; {@link #memory} is where it lies.
   *
   * @param bytes length of the record, a multiple of 8, at most {@link RingDescriptor#MAX_RECORD_BYTES}
   * @return the record's offset in {@link #memory}, or -1 if there is no room: the record is lost and counted
   */
  public long claim(int bytes) {
    long offset = (position - base) & mask;
    long untilEnd = mask + 1 - offset;
    long needed = bytes <= untilEnd ? bytes : untilEnd + bytes;
    if (position + needed - Math.max(knownHead, base) > mask + 1) {
      if (!makeRoom(needed)) {
        return -1;
      }
      offset = (position - base) & mask;
      untilEnd = mask + 1 - offset;
    }
    if (bytes > untilEnd) {
      memory.set(WORD, offset, RingDescriptor.PADDING);
      position += untilEnd;
      offset = 0;
    }
    position += bytes;
    records++;
    return offset;
  }

  /** The memory that the last {@link #claim} was in. */
  public MemorySegment memory() {
    return memory;
  }

  /** Shows the consumer every record claimed so far. One release store. */
  public void publishRelease() {
    CELL.setRelease(control, (long) RingDescriptor.TAIL, position);
  }

  private boolean makeRoom(long needed) {
    knownHead = headAcquire();
    if (position + needed - Math.max(knownHead, base) <= mask + 1) {
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
    if (!OWNER.compareAndSet(this, FREE, TAKEN)) {
      lose(1);
      return false;
    }
    dropOldest();
    OWNER.setRelease(this, FREE);
    knownHead = headAcquire();
    return position + needed - Math.max(knownHead, base) <= mask + 1;
  }

  private void continueIn(Segment segment) {
    segment.base = position;
    segment.firstRecord = records;
    segment.next = null;
    NEXT.setRelease(writing, segment);
    writing = segment;
    memory = segment.memory;
    base = position;
    mask = segment.memory.byteSize() - 1;
  }

  private void dropOldest() {
    Segment oldest = first;
    Segment second = oldest.next;
    if (second == null) {
      lose(records - readRecords);
      readRecords = records;
      setHead(position);
      return;
    }
    lose(second.firstRecord - readRecords);
    readRecords = second.firstRecord;
    setHead(second.base);
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
   * Reads records up to a position. If {@code consumer} throws, the records before the failed one are read and the
   * failed one is still there: {@link #discard} gets past it.
   *
   * @param consumer takes each record
   * @param limit an earlier {@link #tailAcquire}
   * @return the number of records read
   */
  public long drain(RecordConsumer consumer, long limit) {
    long before;
    long after;
    takeOwnership();
    before = readRecords;
    OWNER.setRelease(this, FREE);
    boolean more = true;
    do {
      takeOwnership();
      try {
        more = drainChunk(consumer, limit);
        after = readRecords;
      } finally {
        OWNER.setRelease(this, FREE);
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
        setHead(limit);
      }
    } finally {
      OWNER.setRelease(this, FREE);
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
      OWNER.setRelease(this, FREE);
    }
    if (wanted >= RingDescriptor.MIN_SEGMENT_BYTES) {
      totalBytes += wanted;
      SPARE.setRelease(this, new Segment(source.allocate(wanted)));
    }
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
    long read = readRecords;
    Segment segment = first;
    long sizeMask = segment.memory.byteSize() - 1;
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
        at += consumer.consume(segment.memory, offset);
        read++;
      }
    } finally {
      // Once a chunk: the producer's own fields are near.
      readRecords = read;
      setHead(at);
    }
    return at < limit;
  }

  private void leave(Segment next) {
    totalBytes -= first.memory.byteSize();
    first = next;
  }

  private void setHead(long value) {
    CELL.setRelease(control, (long) RingDescriptor.READ_RECORDS, readRecords);
    CELL.setRelease(control, (long) RingDescriptor.HEAD, value);
  }

  private void takeOwnership() {
    while (!OWNER.compareAndSet(this, FREE, TAKEN)) {
      Thread.onSpinWait();
    }
  }

  /** A piece of the ring's memory and the positions that it covers. */
  private static final class Segment {
    final MemorySegment memory;
    long base;
    long firstRecord;
    volatile @Nullable Segment next;

    Segment(MemorySegment memory) {
      this.memory = memory;
    }
  }
}
