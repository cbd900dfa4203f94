package dev.tacho.server;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * Ends connections whose client has stopped reading: a write that has not come back for so long is taken for one that
 * never will, and would hold the handler's thread, and what the answer is made from, for ever. Any thread.
 */
final class WriteWatch implements AutoCloseable {
  private static final int LOOKS_PER_LIMIT = 10;

  private final long limitNanos;
  private final Set<Answer> answers = ConcurrentHashMap.newKeySet();
  private final Thread thread;
  private volatile boolean closed;

  /**
   * @param limit how long one write may take
   */
  WriteWatch(Duration limit) {
    limitNanos = limit.toNanos();
    thread = Thread.ofPlatform().daemon().name("tacho-write-watch").start(this::look);
  }

  /**
   * Watches the writes of an answer until it is closed.
   *
   * @param disconnect closes the connection, so that the write fails; called at most once, on the watch's thread
   */
  Answer answer(Runnable disconnect) {
    Answer answer = new Answer(disconnect);
    answers.add(answer);
    return answer;
  }

  private void look() {
    while (!closed) {
      LockSupport.parkNanos(this, limitNanos / LOOKS_PER_LIMIT);
      long now = System.nanoTime();
      answers.removeIf(answer -> answer.disconnectIfStuck(now));
    }
  }

  /** Ends the watching. */
  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
  }

  /** An answer that is being written; one write at a time. */
  final class Answer implements AutoCloseable {
    private final Runnable disconnect;
    private volatile long sinceNanos;
    private volatile boolean writing;

    private Answer(Runnable disconnect) {
      this.disconnect = disconnect;
    }

    /** A write begins. */
    void begin() {
      sinceNanos = System.nanoTime();
      writing = true;
    }

    /** It has come back. */
    void end() {
      writing = false;
    }

    /** Disconnects a client that a write has waited for too long; true if it did. */
    private boolean disconnectIfStuck(long now) {
      boolean stuck = writing && now - sinceNanos > limitNanos;
      if (stuck) {
        disconnect.run();
      }
      return stuck;
    }

    @Override
    public void close() {
      answers.remove(this);
    }
  }
}
