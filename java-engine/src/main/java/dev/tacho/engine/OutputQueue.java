package dev.tacho.engine;

import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Carries batches from the engine thread to the output thread and empty ones back. The engine thread never waits: if no
 * empty batch has come back it makes a new one, so the queue grows with what the output thread owes, which the token
 * limits of the live requests bound. In steady state nothing is allocated.
 */
final class OutputQueue {
  /** Batches made beforehand: how many steps the output thread may lag behind before a new one is made. */
  private static final int READY_BATCHES = 32;

  private OutputBatch tail = new OutputBatch();
  private OutputBatch head = tail;
  private final AtomicReference<@Nullable OutputBatch> free = new AtomicReference<>();
  private @Nullable OutputBatch spare;
  private volatile @Nullable Thread waiting;
  private volatile boolean closed;

  OutputQueue() {
    for (int i = 0; i < READY_BATCHES; i++) {
      OutputBatch batch = new OutputBatch();
      batch.next = spare;
      spare = batch;
    }
  }

  /** An empty batch to fill. Engine thread. */
  OutputBatch takeEmpty() {
    OutputBatch batch = spare == null ? free.getAndSet(null) : spare;
    if (batch == null) {
      return new OutputBatch();
    }
    spare = batch.next;
    batch.next = null;
    return batch;
  }

  /** Hands a batch over; its filler must not touch it again. Engine thread. */
  void put(OutputBatch batch) {
    OutputBatch last = tail;
    tail = batch;
    last.next = batch;
    LockSupport.unpark(waiting);
  }

  /** Nothing follows. Engine thread. */
  void close() {
    closed = true;
    LockSupport.unpark(waiting);
  }

  /**
   * Waits for the next batch; it is valid until the next call. Output thread.
   *
   * @return null if the queue is closed and empty
   */
  @Nullable OutputBatch take() {
    OutputBatch read = head;
    OutputBatch following = read.next;
    if (following == null) {
      waiting = Thread.currentThread();
      try {
        for (following = read.next; following == null; following = read.next) {
          if (closed && read.next == null) {
            return null;
          }
          LockSupport.park(this);
        }
      } finally {
        waiting = null;
      }
    }
    head = following;
    giveBack(read);
    return following;
  }

  private void giveBack(OutputBatch read) {
    read.clear();
    OutputBatch others;
    do {
      others = free.get();
      read.next = others;
    } while (!free.compareAndSet(others, read));
  }
}
