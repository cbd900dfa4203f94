package dev.tacho.engine;

import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The way to the engine thread: any thread puts commands in, the engine thread takes all of them at once, in order. No
 * lock; a producer never waits. Closed for good by the engine thread: from then on {@link #put} refuses.
 */
final class Inbox {
  /** A piece of the list: the newest command in front, or the mark that nothing may follow. */
  private static final Object CLOSED = new Object();

  /** Null, a {@link Command} linked to older ones, or {@link #CLOSED}. */
  private final AtomicReference<@Nullable Object> newest = new AtomicReference<>();

  private volatile @Nullable Thread waiting;
  private volatile boolean woken;

  /**
   * Puts a command in and wakes the engine thread if it waits.
   *
   * @return false if the inbox is closed
   */
  boolean put(Command command) {
    Object head;
    do {
      head = newest.get();
      if (head == CLOSED) {
        return false;
      }
      command.next = (Command) head;
    } while (!newest.compareAndSet(head, command));
    LockSupport.unpark(waiting);
    return true;
  }

  /** Ends the engine thread's wait, the present or else the next one. */
  void wake() {
    woken = true;
    LockSupport.unpark(waiting);
  }

  /** Takes what is there: the oldest command, linked to the newer ones; null if there is none. Engine thread. */
  @Nullable Command takeAll() {
    return newest.get() instanceof Command ? oldestFirst(newest.getAndSet(null)) : null;
  }

  /** Closes the inbox and takes what is there. Engine thread. */
  @Nullable Command close() {
    return oldestFirst(newest.getAndSet(CLOSED));
  }

  /** Waits until there may be something; may return at any time. Engine thread. */
  void await() {
    await(Long.MAX_VALUE);
  }

  /** The same, for at most so long. */
  void await(long nanos) {
    // Says first that it waits, then looks; who wakes it does so in the other order, so one of the two sees the other.
    waiting = Thread.currentThread();
    if (newest.get() == null && !woken) {
      LockSupport.parkNanos(this, nanos);
    }
    waiting = null;
    woken = false;
  }

  private static @Nullable Command oldestFirst(@Nullable Object head) {
    Command oldest = null;
    Command command = head instanceof Command newestCommand ? newestCommand : null;
    while (command != null) {
      Command older = command.next;
      command.next = oldest;
      oldest = command;
      command = older;
    }
    return oldest;
  }
}
