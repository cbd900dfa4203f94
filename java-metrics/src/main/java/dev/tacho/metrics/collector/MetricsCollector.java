package dev.tacho.metrics.collector;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Drains the rings of every engine in the JVM, on one daemon thread and whenever somebody asks: every 100 milliseconds,
 * sooner where records come so fast that a ring would fill, or a line of the log is due. Any thread may call; one lock
 * lets one drain at a time. The thread starts with the first engine and ends with the last; if it dies it is
 * started again, once. Nothing here can hold up an engine.
 */
public final class MetricsCollector {
  private static final Logger LOG = LoggerFactory.getLogger(MetricsCollector.class);
  /** Of a thread that has nothing to do any more. */
  private static final long NO_REST = -1;
  private static final int MAX_THREAD_STARTS_AFTER_FAILURE = 1;

  private final ReentrantLock lock = new ReentrantLock();
  private final List<EngineFeed> feeds = new CopyOnWriteArrayList<>();
  private final boolean ownThread;
  private @Nullable Thread thread;
  private int failures;

  private MetricsCollector(boolean ownThread) {
    this.ownThread = ownThread;
  }

  /** The collector of this JVM. */
  public static MetricsCollector shared() {
    return Shared.INSTANCE;
  }

  /** A collector with a thread of its own. */
  static MetricsCollector threaded() {
    return new MetricsCollector(true);
  }

  /**
   * A collector without a thread, which drains only when asked: for tests and for hosts that bring their own thread.
   */
  public static MetricsCollector onDemand() {
    return new MetricsCollector(false);
  }

  /** Takes an engine in. */
  public void join(EngineFeed feed) {
    lock.lock();
    try {
      feeds.add(feed);
      if (ownThread && thread == null) {
        start();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Drains an engine for the last time and lets it go; its loggers are closed. */
  public void leave(EngineFeed feed) {
    boolean member;
    lock.lock();
    try {
      member = feeds.remove(feed);
      if (member) {
        feed.drainForTheLastTime();
      }
    } finally {
      lock.unlock();
    }
    if (member) {
      feed.close();
    }
  }

  /**
   * Drains every engine. What was committed before the call is in the loggers after it, up to the first step whose
   * outputs the output thread had not picked up.
   */
  public void drain() {
    drainThen(() -> {});
  }

  /**
   * Drains every engine, then runs something before anything else can change.
   *
   * @param action short; runs under the collector's lock
   */
  public void drainThen(Runnable action) {
    lock.lock();
    try {
      for (EngineFeed feed : feeds) {
        feed.drain();
      }
      action.run();
    } finally {
      lock.unlock();
    }
  }

  private void start() {
    Thread started = new Thread(this::run, "tacho-metrics-collector");
    started.setDaemon(true);
    thread = started;
    started.start();
  }

  private void run() {
    boolean ended = false;
    try {
      for (long rest = turn(); rest != NO_REST; rest = turn()) {
        LockSupport.parkNanos(this, rest);
      }
      ended = true;
    } finally {
      if (!ended) {
        restart();
      }
    }
  }

  /** Returns the nanoseconds until the next turn, or {@link #NO_REST} if there is nothing left to do. */
  private long turn() {
    lock.lock();
    try {
      if (feeds.isEmpty()) {
        thread = null;
        return NO_REST;
      }
      long now = System.nanoTime();
      long rest = RingPace.LONGEST_NANOS;
      for (EngineFeed feed : feeds) {
        feed.drain();
        feed.log(now);
        rest = Math.min(rest, feed.restNanos(now));
      }
      return rest;
    } finally {
      lock.unlock();
    }
  }

  private void restart() {
    lock.lock();
    try {
      failures++;
      if (failures <= MAX_THREAD_STARTS_AFTER_FAILURE) {
        LOG.error("The metrics collector's thread died and is started again");
        start();
      } else {
        LOG.error("The metrics collector's thread died again; metrics move with scrapes alone");
      }
    } finally {
      lock.unlock();
    }
  }

  /** Made when first asked for. */
  private static final class Shared {
    static final MetricsCollector INSTANCE = threaded();
  }
}
