package dev.tacho.engine;

import dev.tacho.engine.parallel.CpuBudget;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The processors of one engine's team. The engines of a JVM divide what the process may use among themselves: one that
 * is opened later gets what the others have left, at least one, and its team spins only if it fits beside theirs. Any
 * thread; closed with the engine.
 */
final class CpuShare implements AutoCloseable {
  private static final AtomicInteger TAKEN = new AtomicInteger();

  private final int threads;
  private final CpuBudget budget;
  private boolean closed;

  private CpuShare(int threads, CpuBudget budget) {
    this.threads = threads;
    this.budget = budget;
  }

  /**
   * Takes a share.
   *
   * @param wantedThreads as configured, 0 for all that is left
   * @param process what the process may use
   */
  static CpuShare take(int wantedThreads, CpuBudget process) {
    while (true) {
      int taken = TAKEN.get();
      int left = Math.max(1, process.threads() - taken);
      int threads = wantedThreads > 0 ? wantedThreads : left;
      if (TAKEN.compareAndSet(taken, taken + threads)) {
        return new CpuShare(threads, new CpuBudget(left, left));
      }
    }
  }

  /**
   * Takes shares for engines that are opened together: what is left, divided evenly.
   *
   * @param count engines
   * @param wantedThreads of each as configured, 0 for its part of what is left
   * @param process what the process may use
   */
  static List<CpuShare> divide(int count, int wantedThreads, CpuBudget process) {
    List<CpuShare> shares = new ArrayList<>();
    for (int left = count; left > 0; left--) {
      int free = process.threads() - TAKEN.get();
      int threads = wantedThreads > 0 || left == 1 ? wantedThreads : Math.max(1, free / left);
      shares.add(take(threads, process));
    }
    return shares;
  }

  /** Members of the team. */
  int threads() {
    return threads;
  }

  /** Processors that the others have left. */
  CpuBudget budget() {
    return budget;
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      TAKEN.addAndGet(-threads);
    }
  }
}
