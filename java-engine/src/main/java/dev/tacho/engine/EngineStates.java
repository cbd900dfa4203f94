package dev.tacho.engine;

import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The state of one engine. Of the states in which it serves each may follow each; from there it goes on to DRAINING,
 * DEAD and CLOSED, in this order, and never back: who says so late is not heard. Any thread; changes exclude each
 * other, so that the states are published in the order in which they were taken.
 */
final class EngineStates {
  private static final Logger LOG = LoggerFactory.getLogger(EngineStates.class);

  private final String modelName;
  private final Consumer<EngineState> published;
  private final ReentrantLock lock = new ReentrantLock();
  private volatile EngineState state = EngineState.STARTING;
  private volatile @Nullable Throwable death;

  /**
   * @param modelName for the log
   * @param published hears of each state
   */
  EngineStates(String modelName, Consumer<EngineState> published) {
    this.modelName = modelName;
    this.published = published;
  }

  EngineState state() {
    return state;
  }

  /** Changes the state, unless the present one comes after it. */
  void enter(EngineState next) {
    change(state -> end(next) >= end(state), next);
  }

  /** Serves again, if it sleeps. */
  void awake() {
    change(state -> state == EngineState.SLEEPING, EngineState.RUNNING);
  }

  private void change(Predicate<EngineState> allowed, EngineState next) {
    lock.lock();
    try {
      if (allowed.test(state)) {
        state = next;
        published.accept(next);
      }
    } finally {
      lock.unlock();
    }
  }

  /** How far on its way out an engine is. */
  private static int end(EngineState state) {
    return switch (state) {
      case STARTING, RUNNING, SLEEPING, DEGRADED -> 0;
      case DRAINING -> 1;
      case DEAD -> 2;
      case CLOSED -> 3;
    };
  }

  /** Changes the state because of something; null if it is only as it was before. */
  void enter(EngineState next, @Nullable Throwable cause) {
    if (next == EngineState.DEAD) {
      death = cause;
    }
    enter(next);
    if (cause != null) {
      log(next, cause);
    }
  }

  /** Logs on a thread of its own: an appender is foreign code, which may wait. */
  private void log(EngineState next, Throwable cause) {
    try {
      Thread.startVirtualThread(() -> LOG.error("engine {} is {}", modelName, next.label(), cause));
    } catch (OutOfMemoryError e) {
      // The state and the requests' exceptions say it too, and they come first.
      cause.addSuppressed(e);
    }
  }

  /**
   * Says whether requests are accepted.
   *
   * @throws EngineClosedException if the engine is closed or draining
   * @throws EngineDeadException if it is dead
   */
  void checkOpen() {
    if (!state.accepts()) {
      throw closedException();
    }
  }

  /** Why nothing is accepted. */
  EngineException closedException() {
    Throwable cause = death;
    return cause == null ? new EngineClosedException() : new EngineDeadException(cause);
  }
}
