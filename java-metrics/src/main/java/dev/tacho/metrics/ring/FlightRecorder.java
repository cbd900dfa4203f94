package dev.tacho.metrics.ring;

import dev.tacho.metrics.page.ProcessFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Reads what the ring of a process still holds, without that process noticing: of one that runs or of one that died,
 * however it died. That is every record published since the ring last wrapped, and before it those that the process had
 * not read itself. Nothing is taken out. One thread.
 *
 * <p>The records are copied first and then looked at. If the producer began another lap during the copy, or the process
 * itself read on where the producer may then write, the copy is made again.
 */
public final class FlightRecorder {
  private static final ValueLayout.OfLong WORD = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle CELL = WORD.varHandle();
  private static final int ATTEMPTS = 100;

  private final ProcessFile file;
  private final Runnable whileCopying;

  private FlightRecorder(ProcessFile file, Runnable whileCopying) {
    this.file = file;
    this.whileCopying = whileCopying;
  }

  /**
   * Opens a ring's file.
   *
   * @throws IOException if it is no ring that we know; says why
   */
  public static FlightRecorder open(Path path) throws IOException {
    return open(path, () -> {});
  }

  /** With something that happens between a copy and the look whether it is whole. */
  static FlightRecorder open(Path path, Runnable whileCopying) throws IOException {
    return new FlightRecorder(ProcessFile.open(path, ProcessFile.Kind.RING), whileCopying);
  }

  /** The file: which process it is of, whether that one still runs, what time it is there. */
  public ProcessFile file() {
    return file;
  }

  /**
   * What was read.
   *
   * @param begin position of the first record
   * @param end position after the last
   * @param records their number
   * @param lost records that the ring had dropped unread
   */
  public record Recording(long begin, long end, long records, long lost) {}

  /**
   * Hands over the records, oldest first.
   *
   * @param consumer takes each; {@link RecordConsumer#NOT_YET} ends the reading
   * @throws IOException if the file cannot be read, or if its process wrote so fast that no copy was whole
   */
  public Recording read(RecordConsumer consumer) throws IOException {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      MemorySegment data = file.data();
      if (data.byteSize() < RingDescriptor.CONTROL_BYTES) {
        throw new IOException(file + " is damaged: no control block");
      }
      long lap = (long) CELL.getAcquire(data, (long) RingDescriptor.LAP);
      long head = (long) CELL.getAcquire(data, (long) RingDescriptor.HEAD);
      long tail = (long) CELL.getAcquire(data, (long) RingDescriptor.TAIL);
      // What was unread in the lap before is whole as long as it stays unread; this lap as long as no other begins.
      long from = attempt < ATTEMPTS / 2 ? Math.min(head, lap) : lap;
      List<Piece> pieces = copy(data, from, tail);
      whileCopying.run();
      VarHandle.loadLoadFence();
      if ((long) CELL.getAcquire(data, (long) RingDescriptor.LAP) == lap
          && (from == lap || (long) CELL.getAcquire(data, (long) RingDescriptor.HEAD) == head)) {
        long lost = (long) CELL.getAcquire(data, (long) RingDescriptor.LOST);
        return deliver(pieces, tail, lost, consumer);
      }
    }
    throw new IOException(file + " is written faster than it can be read: " + ATTEMPTS + " copies were overtaken");
  }

  /** Copies each segment's part from a position on; a segment that no longer reaches back so far gives what it has. */
  private static List<Piece> copy(MemorySegment data, long from, long tail) {
    List<Piece> pieces = new ArrayList<>();
    long at = RingDescriptor.CONTROL_BYTES;
    while (at + RingDescriptor.SEGMENT_HEADER_BYTES <= data.byteSize()) {
      long capacity = data.get(WORD, at + RingDescriptor.SEGMENT_CAPACITY);
      long base = (long) CELL.getAcquire(data, at + RingDescriptor.SEGMENT_BASE) - 1;
      at += RingDescriptor.SEGMENT_HEADER_BYTES;
      if (capacity <= 0 || capacity > data.byteSize() - at || Long.bitCount(capacity) != 1) {
        break;
      }
      if (base + 1 != RingDescriptor.UNUSED && base <= tail) {
        pieces.add(new Piece(base, data.asSlice(at, capacity)));
      }
      at += capacity;
    }
    pieces.sort(Comparator.comparingLong(piece -> piece.base));
    for (int i = 0; i < pieces.size(); i++) {
      pieces.get(i).copy(from, i + 1 < pieces.size() ? pieces.get(i + 1).base : tail);
    }
    return pieces;
  }

  private static Recording deliver(List<Piece> pieces, long tail, long lost, RecordConsumer consumer)
      throws IOException {
    long begin = tail;
    long end = tail;
    long records = 0;
    for (Piece piece : pieces) {
      begin = Math.min(begin, piece.begin);
      long at = piece.begin;
      while (at < piece.end) {
        long offset = (at - piece.base) & (piece.memory.byteSize() - 1);
        if (piece.memory.get(WORD, offset) == RingDescriptor.PADDING) {
          at += piece.memory.byteSize() - offset;
          continue;
        }
        int bytes = consumer.consume(piece.memory, offset);
        if (bytes == RecordConsumer.NOT_YET) {
          return new Recording(begin, at, records, lost);
        }
        if (bytes < 0 || bytes % RingDescriptor.RECORD_ALIGNMENT != 0) {
          throw new IOException("a record of " + bytes + " bytes at position " + at);
        }
        at += bytes;
        records++;
      }
    }
    return new Recording(begin, end, records, lost);
  }

  /** A segment and the part of it that is copied. */
  private static final class Piece {
    final long base;
    MemorySegment memory;
    long begin;
    long end;

    Piece(long base, MemorySegment memory) {
      this.base = base;
      this.memory = memory;
    }

    void copy(long from, long until) {
      long capacity = memory.byteSize();
      end = until;
      begin = Math.max(from, base);
      if (begin < end - capacity) {
        // Unread records are never written over; what is older than this lap is there only as far as it was unread.
        begin = base + (end - base - 1) / capacity * capacity;
      }
      if (begin < end) {
        MemorySegment copy = Arena.ofAuto().allocate(capacity, Long.BYTES);
        MemorySegment.copy(memory, 0, copy, 0, capacity);
        memory = copy;
      } else {
        begin = end;
      }
    }
  }
}
