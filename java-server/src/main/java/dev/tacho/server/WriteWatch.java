package dev.tacho.server;

import io.helidon.common.buffers.BufferData;
import io.helidon.common.buffers.DataWriter;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ends connections whose client has stopped reading: a write that has not come back for so long is taken for one that
 * never will, and would hold the handler's thread, and what the answer is made from, for ever. Whatever is written to a
 * client goes through its {@link Writer}, so that no answer is left out. Any thread.
 */
final class WriteWatch implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(WriteWatch.class);
  private static final int LOOKS_PER_LIMIT = 10;

  private final long limitNanos;
  private final LongSupplier clock;
  private final Set<Writer> writers = ConcurrentHashMap.newKeySet();
  private final Thread thread;
  private volatile boolean closed;

  /**
   * @param limit how long one write may take
   */
  WriteWatch(Duration limit) {
    this(limit, System::nanoTime);
  }

  /** The same with another clock, of nanoseconds. */
  WriteWatch(Duration limit, LongSupplier clock) {
    limitNanos = limit.toNanos();
    this.clock = clock;
    thread = Thread.ofPlatform().daemon().name("tacho-write-watch").start(this::look);
  }

  /**
   * Watches the writes to a client until {@link Writer#ended}.
   *
   * @param connection where they go
   * @param disconnect closes the connection, so that the write fails; called at most once, on the watch's thread
   */
  Writer over(DataWriter connection, Runnable disconnect) {
    Writer writer = new Writer(connection, disconnect);
    writers.add(writer);
    return writer;
  }

  private void look() {
    while (!closed) {
      LockSupport.parkNanos(this, limitNanos / LOOKS_PER_LIMIT);
      long now = clock.getAsLong();
      writers.removeIf(writer -> writer.disconnectIfStuck(now));
    }
  }

  /** Ends the watching. */
  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
  }

  /** What is written to one client; one write at a time. */
  final class Writer implements DataWriter {
    private final DataWriter connection;
    private final Runnable disconnect;
    private volatile long sinceNanos;
    private volatile boolean writing;

    private Writer(DataWriter connection, Runnable disconnect) {
      this.connection = connection;
      this.disconnect = disconnect;
    }

    @Override
    public void write(BufferData... buffers) {
      watched(() -> connection.write(buffers));
    }

    @Override
    public void write(BufferData buffer) {
      watched(() -> connection.write(buffer));
    }

    @Override
    public void writeNow(BufferData... buffers) {
      watched(() -> connection.writeNow(buffers));
    }

    @Override
    public void writeNow(BufferData buffer) {
      watched(() -> connection.writeNow(buffer));
    }

    @Override
    public void flush() {
      watched(connection::flush);
    }

    private void watched(Runnable write) {
      sinceNanos = clock.getAsLong();
      writing = true;
      try {
        write.run();
      } finally {
        writing = false;
      }
    }

    /** Disconnects a client that a write has waited for too long; true if it did, or could not. */
    private boolean disconnectIfStuck(long now) {
      boolean stuck = writing && now - sinceNanos > limitNanos;
      if (stuck) {
        try {
          disconnect.run();
        } catch (RuntimeException e) {
          // The others are still to be watched.
          LOG.warn("the connection of a client that does not read could not be closed", e);
        }
      }
      return stuck;
    }

    /** Nothing more is written. */
    void ended() {
      writers.remove(this);
    }

    @Override
    public void close() {
      ended();
      connection.close();
    }
  }
}
