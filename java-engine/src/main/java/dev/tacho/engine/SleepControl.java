package dev.tacho.engine;

import dev.tacho.engine.scheduler.PauseState;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Puts all engines of a group to sleep and wakes them, so that none computes while what they share is gone. Any thread;
 * one at a time. An engine that has died takes no part.
 */
final class SleepControl {
  /** Stop reason of a request that ended because its engine was put to sleep. */
  static final String SLEEP = "sleep";

  private static final int MAX_LEVEL = 2;

  private final List<EngineRuntime> engines;
  private final ModelWeights weights;
  private final ReentrantLock lock = new ReentrantLock();
  private final EnumSet<SleepTag> missing = EnumSet.noneOf(SleepTag.class);
  private boolean weightsDiscarded;
  private volatile boolean closed;
  private volatile boolean sleeping;

  SleepControl(List<EngineRuntime> engines, ModelWeights weights) {
    this.engines = List.copyOf(engines);
    this.weights = weights;
  }

  /** See {@link Engine#sleep(int, SleepMode)}. */
  void sleep(int level, SleepMode mode) {
    if (level < 0 || level > MAX_LEVEL) {
      throw new InvalidRequestException("level", "must be 0, 1 or 2, is " + level);
    }
    if (level > 0) {
      weights.requireDiscardable();
    }
    lock.lock();
    try {
      checkOpen();
      if (level == 0 && sleeping) {
        return;
      }
      PauseState pause = mode == SleepMode.KEEP ? PauseState.PAUSED_ALL : PauseState.PAUSED_NEW;
      List<EngineRuntime> living = new ArrayList<>();
      for (EngineRuntime engine : engines) {
        if (unlessDead(() -> engine.pause(pause))) {
          living.add(engine);
        }
      }
      // What must be woken is known before anything is given up, so that a failure in between can be mended by wake.
      missing.clear();
      missing.addAll(level == 0 ? Set.of(SleepTag.SCHEDULING) : Set.of(SleepTag.WEIGHTS, SleepTag.KV_CACHE));
      sleeping = true;
      if (mode == SleepMode.ABORT) {
        living.forEach(engine -> engine.abortAll(SLEEP));
      }
      living.removeIf(engine -> !unlessDead(() -> engine.suspend(level > 0, mode)));
      if (level == MAX_LEVEL && !weightsDiscarded) {
        weightsDiscarded = true;
        weights.discard();
        engines.forEach(engine -> engine.weightsHeld(false));
      }
      living.forEach(engine -> engine.asleep(level));
    } finally {
      lock.unlock();
    }
  }

  /** See {@link Engine#wake(Set)}. */
  void wake(Set<SleepTag> tags) {
    lock.lock();
    try {
      checkOpen();
      if (missing.isEmpty()) {
        return;
      }
      Set<SleepTag> wanted = tags.isEmpty() ? EnumSet.allOf(SleepTag.class) : tags;
      if (weightsDiscarded && wanted.contains(SleepTag.WEIGHTS)) {
        weights.restore();
        engines.forEach(engine -> engine.weightsHeld(true));
        weightsDiscarded = false;
      }
      missing.removeAll(wanted);
      if (missing.isEmpty()) {
        for (EngineRuntime engine : engines) {
          var _ = unlessDead(engine::resume);
        }
        sleeping = false;
      }
    } finally {
      lock.unlock();
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new EngineClosedException();
    }
  }

  /** The engines are being closed: from now on nobody puts them to sleep or wakes them. */
  void refuse() {
    closed = true;
  }

  /** Waits for whoever puts the engines to sleep at the moment; afterwards the weights are not touched. */
  void close() {
    lock.lock();
    try {
      refuse();
    } finally {
      lock.unlock();
    }
  }

  /** True from the moment that requests are held back until all of it has been woken. */
  boolean isSleeping() {
    return sleeping;
  }

  /** False if the engine that something is done to has died. */
  private static boolean unlessDead(Runnable action) {
    try {
      action.run();
      return true;
    } catch (EngineDeadException e) {
      return false;
    }
  }
}
