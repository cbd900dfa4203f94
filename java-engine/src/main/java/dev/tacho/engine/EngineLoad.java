package dev.tacho.engine;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * How busy an engine is, for the choice among several. The engine thread says what its scheduler has, whoever submits
 * says what is under way; no lock, no waiting. Readers see values of slightly different moments, which a choice bears.
 */
final class EngineLoad {
  /** Weight of a waiting sequence at a full KV cache, above the part of the cache from which it counts. */
  private static final double WAITING_WEIGHT = 6;

  private static final double FREE_KV_USAGE = 0.5;

  // Those of the engines in this JVM that compute.
  private static final Set<EngineLoad> OPEN = ConcurrentHashMap.newKeySet();

  private final AtomicInteger inFlight = new AtomicInteger();
  private final AtomicInteger waiting = new AtomicInteger();
  private volatile int running;
  private volatile double kvUsage;

  /** Its engine computes from now on. */
  void open() {
    OPEN.add(this);
  }

  /** Its engine computes no more, whatever was with it. */
  void close() {
    OPEN.remove(this);
  }

  /** Sequences have been given to the engine; they count as waiting until its scheduler says what it has. */
  void submitted(int sequences) {
    inFlight.addAndGet(sequences);
    waiting.addAndGet(sequences);
  }

  /** Sequences have ended. */
  void ended(int sequences) {
    inFlight.addAndGet(-sequences);
  }

  /** True if no sequence is with any engine of this JVM that computes. */
  static boolean allIdle() {
    for (EngineLoad load : OPEN) {
      if (load.inFlight.get() > 0) {
        return false;
      }
    }
    return true;
  }

  /** What the scheduler has. Engine thread. */
  void snapshot(int runningSequences, int waitingSequences, double usage) {
    running = runningSequences;
    kvUsage = usage;
    waiting.set(waitingSequences);
  }

  /** The smaller the better. */
  double score() {
    int queued = Math.max(0, waiting.get());
    double score = Math.max(inFlight.get(), queued + running);
    return queued == 0 ? score : score + queued * WAITING_WEIGHT * Math.max(0, kvUsage - FREE_KV_USAGE);
  }
}
