package dev.tacho.engine.parallel;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A fixed team of threads that run the same program together: every member runs the task, takes its share of each
 * operator's items ({@link TeamMember#begin} or {@link WorkShare}), and meets the others at {@link TeamMember#barrier}
 * between operators.
 *
 * <p>One thread at a time, the launcher, calls {@link #launch} and {@link #await}; it is no member. Two tasks may be
 * launched at a time: the second begins when every member has ended the first, without the launcher. Members are
 * platform daemon threads named {@code <name>-worker-<i>}. Between two tasks and at barriers they spin for a while,
 * then park; with more members than processors they park at once, as a spinning thread would then hold up the one that
 * it waits for. {@code launch}, {@code await} and the members themselves allocate nothing.
 *
 * <p>When a member fails, the others get a {@link BrokenTeamException} at their next barrier, and the {@code await} of
 * that task throws the first failure; the next task runs as if nothing had happened. {@link #close} waits for the tasks
 * launched, ends the threads and joins them; launching on a closed team is an {@link IllegalStateException}.
 */
public final class WorkerTeam implements AutoCloseable {
  /** How long a waiting thread spins before it parks, if there are processors enough. */
  public static final long DEFAULT_SPIN_NANOS = 50_000;

  /* Cells, each on a line of its own (two, for the prefetcher of adjacent lines). */
  private static final int CELL_LONGS = 16;
  private static final int ENDED = 0;
  private static final int LAUNCHES = CELL_LONGS;
  private static final int RUNNING = 2 * CELL_LONGS;
  private static final int ARRIVED = 3 * CELL_LONGS;
  private static final int MEETINGS = 4 * CELL_LONGS;
  private static final int BROKEN = 5 * CELL_LONGS;
  private static final int CLOSED = 6 * CELL_LONGS;
  private static final int LAUNCHER_PARKED = 7 * CELL_LONGS;
  private static final int BUSY_NANOS = 8 * CELL_LONGS;
  private static final int CLAIMS = 9 * CELL_LONGS;
  private static final int MEMBER_PARKED = 10 * CELL_LONGS;

  /* In a member's cell, on its second line: how long it has waited for the others. */
  private static final int WAIT_NANOS = CELL_LONGS / 2;

  private static final int SPINS_BETWEEN_CLOCKS = 64;

  /** Tasks that may be launched and not awaited. */
  private static final int MAX_LAUNCHED = 2;

  private static final VarHandle CELL = MethodHandles.arrayElementVarHandle(long[].class);

  private final int size;
  private final long memberSpinNanos;
  private final long launcherSpinNanos;
  private final long[] cells;
  private final Thread[] threads;
  private final AtomicReferenceArray<@Nullable Throwable> failures = new AtomicReferenceArray<>(MAX_LAUNCHED);
  private final @Nullable TeamTask[] tasks = new @Nullable TeamTask[MAX_LAUNCHED];
  // Between the end of the task before and the start of this one: of each task that may be under way.
  private final long[] gapNanos = new long[MAX_LAUNCHED];
  private long startNanos;
  private long endNanos;
  private long launched;
  private long awaited;
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
    set(RUNNING, size);
    endNanos = System.nanoTime();
    threads = new Thread[size];
    for (int i = 0; i < size; i++) {
      TeamMember member = new TeamMember(this, i);
      threads[i] = Thread.ofPlatform().name(name + "-worker-" + i).daemon().unstarted(() -> serve(member));
    }
    for (Thread thread : threads) {
      thread.start();
    }
  }

  /** Nanoseconds of the tasks that have ended, each from its start to the end of its last member. Any thread. */
  public long busyNanos() {
    return get(BUSY_NANOS);
  }

  /**
   * Nanoseconds that a member has waited for the others, at barriers and at the end of its tasks. Waits that end before
   * a spinning member looks at the clock are not counted: members that come together within a microsecond or two read
   * no clock. Any thread.
   *
   * @param member its number, 0 to {@link #size} - 1
   */
  public long waitNanos(int member) {
    return get(parkedCell(member) + WAIT_NANOS);
  }

  /** Members of the team. */
  public int size() {
    return size;
  }

  /**
   * Has every member run a task, after the one launched before; returns at once.
   *
   * @throws IllegalStateException if the team is closed or two tasks were not awaited
   */
  public void launch(TeamTask task) {
    if (get(CLOSED) != 0) {
      throw new IllegalStateException("the team is closed");
    }
    if (launched - awaited == MAX_LAUNCHED) {
      throw new IllegalStateException(MAX_LAUNCHED + " tasks were not awaited");
    }
    tasks[place(launched)] = task;
    launcher = Thread.currentThread();
    set(LAUNCHES, ++launched);
    wakeMembers();
  }

  /**
   * Waits until every member has ended the oldest task that was not awaited. An interrupt does not end the wait; it is
   * kept for the caller.
   *
   * @return nanoseconds between the end of the task before, on all members, and the start of this one; of the first
   *     task, since the team was made
   * @throws IllegalStateException if nothing was launched
   */
  public long await() {
    if (launched == awaited) {
      throw new IllegalStateException("nothing was launched");
    }
    int place = place(awaited);
    join();
    Throwable thrown = failures.getAndSet(place, null);
    if (thrown instanceof RuntimeException exception) {
      throw exception;
    }
    if (thrown instanceof Error error) {
      throw error;
    }
    return gapNanos[place];
  }

  private static int place(long task) {
    return (int) (task % MAX_LAUNCHED);
  }

  /** Waits for the oldest task that was not awaited. */
  private void join() {
    launcher = Thread.currentThread();
    boolean interrupted = false;
    long begin = launcherSpinNanos > 0 ? System.nanoTime() : 0;
    while (!waitUntilAtLeast(ENDED, awaited + 1, LAUNCHER_PARKED, launcherSpinNanos, begin)) {
      interrupted |= Thread.interrupted();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    tasks[place(awaited)] = null;
    awaited++;
  }

  /**
   * Waits for the tasks launched, then ends and joins the threads. Called by the launcher, or by another thread once
   * the launcher has ended; never by a member. A second call does nothing.
   */
  @Override
  public void close() {
    Thread current = Thread.currentThread();
    for (Thread thread : threads) {
      if (thread == current) {
        throw new IllegalStateException("a member cannot close its own team");
      }
    }
    while (awaited < launched) {
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
    long task = 0;
    while (waitForTask(task, parked)) {
      TeamTask current = tasks[place(task)];
      if (member.index() == 0) {
        startNanos = System.nanoTime();
        gapNanos[place(task)] = startNanos - endNanos;
      }
      try {
        if (current != null) {
          current.run(member);
        }
      } catch (Throwable e) {
        fail(task, e);
      }
      if ((long) CELL.getAndAdd(cells, RUNNING, -1L) == 1) {
        end(task);
      }
      task++;
    }
  }

  /** By the member that ends last: makes the team ready for the next task. */
  private void end(long task) {
    set(RUNNING, size);
    set(ARRIVED, 0);
    set(CLAIMS, 0);
    set(BROKEN, 0);
    endNanos = System.nanoTime();
    set(BUSY_NANOS, get(BUSY_NANOS) + endNanos - startNanos);
    set(ENDED, task + 1);
    if (get(LAUNCHER_PARKED) != 0) {
      LockSupport.unpark(launcher);
    }
    if (get(LAUNCHES) > task + 1) {
      wakeMembers();
    }
  }

  private void fail(long task, Throwable cause) {
    failures.compareAndSet(place(task), null, cause);
    set(BROKEN, 1);
    wakeMembers();
  }

  /** See {@link TeamMember#claim}. */
  int claim() {
    return (int) (long) CELL.getAndAdd(cells, CLAIMS, 1L);
  }

  /** See {@link TeamMember#barrier}. A member that comes last opens it by counting the meeting. */
  void barrier(int index) {
    long meetings = get(MEETINGS);
    if (get(BROKEN) != 0) {
      throw new BrokenTeamException();
    }
    if ((long) CELL.getAndAdd(cells, ARRIVED, 1L) + 1 == size) {
      // Seen by whoever sees the meeting, which alone lets anybody arrive or claim again.
      CELL.setOpaque(cells, ARRIVED, 0L);
      CELL.setOpaque(cells, CLAIMS, 0L);
      set(MEETINGS, meetings + 1);
      wakeMembers();
      return;
    }
    while (!waitUntilChanged(MEETINGS, meetings, BROKEN, parkedCell(index), true)) {
      var _ = Thread.interrupted();
    }
    if (get(MEETINGS) == meetings) {
      throw new BrokenTeamException();
    }
  }

  /* Waiting. A thread that parks first says so in its cell, then looks again; a waker first writes what is waited for,
   * then looks at the cell. Both are volatile, so at least one of them sees the other. */

  /**
   * Spins, then parks once; true when the cell has changed from {@code old} or {@code alarm} is not 0.
   *
   * @param forOthers the time belongs to a task, and is counted
   */
  private boolean waitUntilChanged(int cell, long old, int alarm, int parkedCell, boolean forOthers) {
    long begin = 0;
    long now = 0;
    while (memberSpinNanos > 0 && now - begin < memberSpinNanos) {
      for (int i = 0; i < SPINS_BETWEEN_CLOCKS; i++) {
        if (get(cell) != old || get(alarm) != 0) {
          countWait(parkedCell, forOthers ? now - begin : 0);
          return true;
        }
        Thread.onSpinWait();
      }
      // The first reading comes after the first spins: a meeting of members that come together costs no clock.
      now = System.nanoTime();
      begin = begin == 0 ? now : begin;
    }
    set(parkedCell, 1);
    boolean changed = get(cell) != old || get(alarm) != 0;
    if (!changed) {
      begin = begin == 0 ? System.nanoTime() : begin;
      LockSupport.park();
      now = System.nanoTime();
      changed = get(cell) != old || get(alarm) != 0;
    }
    set(parkedCell, 0);
    countWait(parkedCell, forOthers ? now - begin : 0);
    return changed;
  }

  /** Spins for so long from {@code begin}, then parks once; true when the cell is at least {@code value}. */
  private boolean waitUntilAtLeast(int cell, long value, int parkedCell, long spinNanos, long begin) {
    if (spinNanos > 0) {
      do {
        for (int i = 0; i < SPINS_BETWEEN_CLOCKS; i++) {
          if (get(cell) >= value) {
            return true;
          }
          Thread.onSpinWait();
        }
      } while (System.nanoTime() - begin < spinNanos);
    }
    set(parkedCell, 1);
    if (get(cell) < value) {
      LockSupport.park();
    }
    set(parkedCell, 0);
    return get(cell) >= value;
  }

  /** By the thread that has waited. */
  private void countWait(int parkedCell, long nanos) {
    if (nanos > 0) {
      int cell = parkedCell + WAIT_NANOS;
      CELL.setOpaque(cells, cell, (long) CELL.getOpaque(cells, cell) + nanos);
    }
  }

  /** Waits until a task may begin: it is launched, and all members have ended the one before. False at the end. */
  private boolean waitForTask(long task, int parkedCell) {
    if (get(ENDED) < task) {
      long begin = System.nanoTime();
      while (!waitUntilAtLeast(ENDED, task, parkedCell, memberSpinNanos, begin)) {
        var _ = Thread.interrupted();
      }
      // A parked member may have been woken long after: nobody can end another task without it, so this is still its.
      countWait(parkedCell, endNanos - begin);
    }
    while (!waitUntilChanged(LAUNCHES, task, CLOSED, parkedCell, false)) {
      var _ = Thread.interrupted();
    }
    return get(LAUNCHES) != task;
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
