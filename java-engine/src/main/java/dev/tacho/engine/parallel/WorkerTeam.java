package dev.tacho.engine.parallel;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A fixed team of threads that run the same program together: every member runs the task, takes its contiguous
 * share of each operator's items, and meets the others at {@link TeamMember#barrier} between operators.
 *
 * <p>One thread at a time, the launcher, calls {@link #launch} and then {@link #await}; it is no member. Members are
 * platform daemon threads named {@code <name>-worker-<i>}. Between two tasks and at barriers they spin for a while,
 * then park; with more members than processors they park at once, as a spinning thread would then hold up the one that
 * it waits for. {@code launch}, {@code await} and the members themselves allocate nothing.
 *
 * <p>When a member fails, the others get a {@link BrokenTeamException} at their next barrier, and {@code await} throws
 * the first failure; the team is then ready for the next task. {@link #close} waits for a running task, ends the
 * threads and joins them; launching on a closed team is an {@link IllegalStateException}.
 */
public final class WorkerTeam implements AutoCloseable {
  /** How long a waiting thread spins before it parks, if there are processors enough. */
  public static final long DEFAULT_SPIN_NANOS = 50_000;

  /* Cells, each on a line of its own (two, for the prefetcher of adjacent lines). */
  private static final int CELL_LONGS = 16;
  private static final int LAUNCHES = CELL_LONGS;
  private static final int RUNNING = 2 * CELL_LONGS;
  private static final int ARRIVED = 3 * CELL_LONGS;
  private static final int MEETINGS = 4 * CELL_LONGS;
  private static final int BROKEN = 5 * CELL_LONGS;
  private static final int CLOSED = 6 * CELL_LONGS;
  private static final int LAUNCHER_PARKED = 7 * CELL_LONGS;
  private static final int MEMBER_PARKED = 8 * CELL_LONGS;

  private static final int SPINS_BETWEEN_CLOCKS = 64;

  private static final VarHandle CELL = MethodHandles.arrayElementVarHandle(long[].class);

  private final int size;
  private final long memberSpinNanos;
  private final long launcherSpinNanos;
  private final long[] cells;
  private final Thread[] threads;
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
  private @Nullable TeamTask task;
  private volatile @Nullable Thread launcher;

  /**
   * A team that spins as the machine allows.
   *
   * @param name prefix of the threads' names
   * @param size members, at least 1
   */
  public WorkerTeam(String name, int size) {
    this(name, size, CpuBudget.read());
  }

  /**
   * A team that spins as a budget allows.
   *
   * @param name prefix of the threads' names
   * @param size members, at least 1
   * @param budget processors that may be used: members spin if they all fit, the launcher if it fits beside them
   */
  public WorkerTeam(String name, int size, CpuBudget budget) {
    if (size < 1) {
      throw new IllegalArgumentException("a team of " + size + " members, expected at least 1");
    }
    this.size = size;
    memberSpinNanos = size <= budget.threads() ? DEFAULT_SPIN_NANOS : 0;
    launcherSpinNanos = size < budget.threads() ? DEFAULT_SPIN_NANOS : 0;
    cells = new long[MEMBER_PARKED + (size + 1) * CELL_LONGS];
    threads = new Thread[size];
    for (int i = 0; i < size; i++) {
      TeamMember member = new TeamMember(this, i);
      threads[i] = Thread.ofPlatform().name(name + "-worker-" + i).daemon().unstarted(() -> serve(member));
    }
    for (Thread thread : threads) {
      thread.start();
    }
  }

  /** Members of the team. */
  public int size() {
    return size;
  }

  /**
   * Starts a task on every member and returns at once.
   *
   * @throws IllegalStateException if the team is closed or the last task was not awaited
   */
  public void launch(TeamTask task) {
    if (get(CLOSED) != 0) {
      throw new IllegalStateException("the team is closed");
    }
    if (this.task != null) {
      throw new IllegalStateException("the last task was not awaited");
    }
    this.task = task;
    launcher = Thread.currentThread();
    set(RUNNING, size);
    set(LAUNCHES, get(LAUNCHES) + 1);
    wakeMembers();
  }

  /**
   * Waits until every member has ended the task. An interrupt does not end the wait; it is kept for the caller.
   *
   * @throws IllegalStateException if nothing was launched
   */
  public void await() {
    if (task == null) {
      throw new IllegalStateException("nothing was launched");
    }
    join();
    Throwable thrown = failure.getAndSet(null);
    if (thrown instanceof RuntimeException exception) {
      throw exception;
    }
    if (thrown instanceof Error error) {
      throw error;
    }
  }

  /** Waits for the running task, if there is one, and makes the team ready for the next. */
  private void join() {
    launcher = Thread.currentThread();
    boolean interrupted = false;
    while (!waitUntilEqual(RUNNING, 0, LAUNCHER_PARKED, launcherSpinNanos)) {
      interrupted |= Thread.interrupted();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    task = null;
    set(ARRIVED, 0);
    set(BROKEN, 0);
  }

  /**
   * Waits for a running task, then ends and joins the threads. Called by the launcher, or by another thread once the
   * launcher has ended; never by a member. A second call does nothing.
   */
  @Override
  public void close() {
    Thread current = Thread.currentThread();
    for (Thread thread : threads) {
      if (thread == current) {
        throw new IllegalStateException("a member cannot close its own team");
      }
    }
    if (task != null) {
      join();
    }
    set(CLOSED, 1);
    wakeMembers();
    boolean interrupted = false;
    for (Thread thread : threads) {
      while (thread.isAlive()) {
        try {
          thread.join();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    }
    if (interrupted) {
      current.interrupt();
    }
  }

  private void serve(TeamMember member) {
    int parked = parkedCell(member.index());
    long launches = 0;
    while (true) {
      while (!waitUntilChanged(LAUNCHES, launches, CLOSED, parked)) {
        var _ = Thread.interrupted();
      }
      if (get(LAUNCHES) == launches) {
        return;
      }
      launches++;
      TeamTask current = task;
      try {
        if (current != null) {
          current.run(member);
        }
      } catch (Throwable e) {
        fail(e);
      }
      if ((long) CELL.getAndAdd(cells, RUNNING, -1L) == 1 && get(LAUNCHER_PARKED) != 0) {
        LockSupport.unpark(launcher);
      }
    }
  }

  private void fail(Throwable cause) {
    failure.compareAndSet(null, cause);
    set(BROKEN, 1);
    wakeMembers();
  }

  /** See {@link TeamMember#barrier}. A member that comes last opens it by counting the meeting. */
  void barrier(int index) {
    long meetings = get(MEETINGS);
    if (get(BROKEN) != 0) {
      throw new BrokenTeamException();
    }
    if ((long) CELL.getAndAdd(cells, ARRIVED, 1L) + 1 == size) {
      set(ARRIVED, 0);
      set(MEETINGS, meetings + 1);
      wakeMembers();
      return;
    }
    while (!waitUntilChanged(MEETINGS, meetings, BROKEN, parkedCell(index))) {
      var _ = Thread.interrupted();
    }
    if (get(MEETINGS) == meetings) {
      throw new BrokenTeamException();
    }
  }

  /* Waiting. A thread that parks first says so in its cell, then looks again; a waker first writes what is waited for,
   * then looks at the cell. Both are volatile, so at least one of them sees the other. */

  /** Spins, then parks once; true when the cell has changed from {@code old} or {@code alarm} is not 0. */
  private boolean waitUntilChanged(int cell, long old, int alarm, int parkedCell) {
    if (memberSpinNanos > 0) {
      long deadline = System.nanoTime() + memberSpinNanos;
      do {
        for (int i = 0; i < SPINS_BETWEEN_CLOCKS; i++) {
          if (get(cell) != old || get(alarm) != 0) {
            return true;
          }
          Thread.onSpinWait();
        }
      } while (System.nanoTime() - deadline < 0);
    }
    set(parkedCell, 1);
    boolean changed = get(cell) != old || get(alarm) != 0;
    if (!changed) {
      LockSupport.park();
      changed = get(cell) != old || get(alarm) != 0;
    }
    set(parkedCell, 0);
    return changed;
  }

  /** Spins, then parks once; true when the cell is {@code value}. */
  private boolean waitUntilEqual(int cell, long value, int parkedCell, long spinNanos) {
    if (spinNanos > 0) {
      long deadline = System.nanoTime() + spinNanos;
      do {
        for (int i = 0; i < SPINS_BETWEEN_CLOCKS; i++) {
          if (get(cell) == value) {
            return true;
          }
          Thread.onSpinWait();
        }
      } while (System.nanoTime() - deadline < 0);
    }
    set(parkedCell, 1);
    if (get(cell) != value) {
      LockSupport.park();
    }
    set(parkedCell, 0);
    return get(cell) == value;
  }

  private void wakeMembers() {
    for (int i = 0; i < size; i++) {
      if (get(parkedCell(i)) != 0) {
        LockSupport.unpark(threads[i]);
      }
    }
  }

  private static int parkedCell(int index) {
    return MEMBER_PARKED + index * CELL_LONGS;
  }

  private long get(int cell) {
    return (long) CELL.getVolatile(cells, cell);
  }

  private void set(int cell, long value) {
    CELL.setVolatile(cells, cell, value);
  }
}
