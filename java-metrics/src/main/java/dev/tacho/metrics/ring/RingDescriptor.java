package dev.tacho.metrics.ring;

/**
 * Byte layout of an {@link EventRing}: one control block and any number of data segments. Positions are absolute: they
 * count bytes since the ring was made and never decrease. All numbers are little-endian longs.
 *
 * <pre>
 *  control block, {@value #CONTROL_BYTES} bytes
 *    0  tail          end of what is published             producer writes (release), consumer reads (acquire)
 *    8  lap           start of the producer's present lap  producer writes before it overwrites the lap before
 *   16  (pad)
 *  128  head          start of what is unread              consumer writes (release), producer reads (acquire)
 *  136  read records  records before head                  as head
 *  144  owner         1 while somebody reads or drops      both, by compare-and-set
 *  152  (pad)
 *  256  full          times that the producer found its segment full        producer writes
 *  264  lost          records dropped unread                                 producer writes
 *  272  (pad)
 *
 *  data segment: a header of {@value #SEGMENT_HEADER_BYTES} bytes, then a power of two of bytes, its capacity, that
 *  covers the positions from its base
 *    0  base + 1, 0 while unused | 8  capacity | 16 (pad)
 *  +--------+----------------+--------+---------+
 *  | record | record         | record | 0 (pad) |   position p lies at byte (p - base) mod capacity
 *  +--------+----------------+--------+---------+   a record never crosses the end: a word of 0 says "go on at byte 0"
 * </pre>
 *
 * <p>A lap begins with a record at byte 0 of a segment. From the lap's start to the tail everything is whole as long as
 * no other lap has begun, read or not.
 *
 * <p>A record is a multiple of 8 bytes and its first word is not 0. Two cache lines lie between cells of different
 * writers, as processors fetch lines in pairs.
 */
public final class RingDescriptor {
  /** Bytes of the control block. */
  public static final int CONTROL_BYTES = 384;
  /** Offset of the tail. */
  public static final int TAIL = 0;
  /** Offset of the start of the producer's present lap. */
  public static final int LAP = 8;
  /** Offset of the head. */
  public static final int HEAD = 128;
  /** Offset of the number of records before the head. */
  public static final int READ_RECORDS = 136;
  /** Offset of the cell that says whether somebody reads or drops records. */
  public static final int OWNER = 144;
  /** Offset of the number of times that a segment was found full. */
  public static final int FULL = 256;
  /** Offset of the number of records dropped unread. */
  public static final int LOST = 264;
  /** Bytes before the data of a segment. */
  public static final int SEGMENT_HEADER_BYTES = 64;
  /** Offset of a segment's base, plus 1, in its header. */
  public static final int SEGMENT_BASE = 0;
  /** The base of a segment that is not in use. */
  public static final long UNUSED = 0;
  /** Offset of a segment's capacity in its header. */
  public static final int SEGMENT_CAPACITY = 8;
  /** Records begin at multiples of this many bytes. */
  public static final int RECORD_ALIGNMENT = 8;
  /** The longest record, in bytes. */
  public static final int MAX_RECORD_BYTES = 2048;
  /** The smallest data segment, in bytes. */
  public static final int MIN_SEGMENT_BYTES = 4096;
  /** The first word of padding at the end of a segment. */
  public static final long PADDING = 0;

  private RingDescriptor() {}
}
