package dev.tacho.engine.parallel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tacho.metrics.Await;
import java.lang.management.ManagementFactory;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Launching, meeting, failing and closing; a hang shows as a timeout. */
@Timeout(120)
class WorkerTeamTest {
  /** More processors than any team here, so that members spin. */
  private static final CpuBudget SPINNING = new CpuBudget(64, Double.POSITIVE_INFINITY);

  /** Fewer processors than members, so that everybody parks at once. */
  private static final CpuBudget PARKING = new CpuBudget(1, Double.POSITIVE_INFINITY);

  @ParameterizedTest(name = "{0} members, parking {1}")
  @CsvSource({"1, false", "1, true", "2, false", "2, true", "7, true"})
  void tenThousandLaunchesRunEveryMemberOnce(int size, boolean parking) {
    AtomicInteger[] runs = new AtomicInteger[size];
    for (int i = 0; i < size; i++) {
      runs[i] = new AtomicInteger();
    }
    try (WorkerTeam team = new WorkerTeam("test", size, parking ? PARKING : SPINNING)) {
      for (int launch = 1; launch <= 10_000; launch++) {
        team.launch(member -> runs[member.index()].incrementAndGet());
        team.await();
        for (AtomicInteger count : runs) {
          assertThat(count.get()).isEqualTo(launch);
        }
      }
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4})
  void nobodyPassesABarrierBeforeEverybodyCame(long seed) {
    int size = 2 + (int) (seed % 3);
    int meetings = 300;
    long[] progress = new long[size];
    AtomicInteger early = new AtomicInteger();
    try (WorkerTeam team = new WorkerTeam("test", size, seed % 2 == 0 ? PARKING : SPINNING)) {
      team.launch(
          member -> {
            Random random = new Random(seed * 31 + member.index());
            for (int meeting = 1; meeting <= meetings; meeting++) {
              delay(random);
              progress[member.index()] = meeting;
              member.barrier();
              for (long other : progress) {
                if (other != meeting) {
                  early.incrementAndGet();
                }
              }
              member.barrier();
            }
          });
      team.await();
    }
    assertThat(early).hasValue(0);
    assertThat(progress).containsOnly(meetings);
  }

  /** Between nothing and a few hundred microseconds, so that some wait by spinning and some by parking. */
  private static void delay(Random random) {
    switch (random.nextInt(4)) {
      case 0 -> LockSupport.parkNanos(random.nextInt(200_000));
      case 1 -> LockSupport.parkNanos(1);
      default -> Thread.onSpinWait();
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {11, 12, 13, 14, 15, 16})
  void aMemberThatFailsReleasesTheOthersAndAwaitThrowsWhatItThrew(long seed) {
    Random random = new Random(seed);
    int size = 2 + random.nextInt(4);
    try (WorkerTeam team = new WorkerTeam("test", size, random.nextBoolean() ? PARKING : SPINNING)) {
      for (int round = 0; round < 200; round++) {
        int failing = random.nextInt(size);
        int at = random.nextInt(20);
        IllegalStateException failure = new IllegalStateException("planted in member " + failing);
        AtomicInteger released = new AtomicInteger();
        team.launch(
            member -> {
              for (int meeting = 0; meeting < 20; meeting++) {
                if (member.index() == failing && meeting == at) {
                  throw failure;
                }
                try {
                  member.barrier();
                } catch (BrokenTeamException e) {
                  released.incrementAndGet();
                  throw e;
                }
              }
            });
        assertThatThrownBy(team::await).isSameAs(failure);
        assertThat(released).hasValue(size - 1);
        AtomicInteger runs = new AtomicInteger();
        team.launch(
            member -> {
              member.barrier();
              runs.incrementAndGet();
            });
        team.await();
        assertThat(runs).hasValue(size);
      }
    }
  }

  @ParameterizedTest(name = "{0} members, parking {1}")
  @CsvSource({"1, false", "1, true", "2, false", "2, true", "5, true"})
  void aTaskBeginsWhenEveryMemberHasEndedTheOneBefore(int size, boolean parking) {
    Random random = new Random(size);
    long[] ended = new long[size];
    AtomicInteger early = new AtomicInteger();
    try (WorkerTeam team = new WorkerTeam("test", size, parking ? PARKING : SPINNING)) {
      for (int launch = 0; launch < 3000; launch++) {
        long number = launch;
        long delay = random.nextInt(20_000);
        team.launch(
            member -> {
              for (long other : ended) {
                if (other != number && other != number + 1) {
                  early.incrementAndGet();
                }
              }
              if (member.index() == number % size) {
                LockSupport.parkNanos(delay);
              }
              member.barrier();
              ended[member.index()] = number + 1;
            });
        if (launch > 0) {
          team.await();
        }
      }
      team.await();
    }
    assertThat(early).hasValue(0);
    assertThat(ended).containsOnly(3000);
  }

  @Test
  void aFailureBelongsToItsTaskAlone() {
    IllegalStateException first = new IllegalStateException("first");
    IllegalStateException third = new IllegalStateException("third");
    AtomicInteger meetings = new AtomicInteger();
    try (WorkerTeam team = new WorkerTeam("test", 3, PARKING)) {
      for (int round = 0; round < 500; round++) {
        int failing = round % 3;
        team.launch(member -> throwOrMeet(member, failing, first));
        team.launch(
            member -> {
              member.barrier();
              meetings.incrementAndGet();
            });
        assertThatThrownBy(team::await).isSameAs(first);
        team.launch(member -> throwOrMeet(member, failing, third));
        team.await();
        assertThat(meetings.getAndSet(0)).isEqualTo(3);
        assertThatThrownBy(team::await).isSameAs(third);
      }
    }
  }

  private static void throwOrMeet(TeamMember member, int failing, IllegalStateException failure) {
    if (member.index() == failing) {
      throw failure;
    }
    member.barrier();
  }

  @Test
  void theGapBeforeATaskIsTheTimeWithoutOne() {
    try (WorkerTeam team = new WorkerTeam("test", 2, PARKING)) {
      team.launch(member -> {});
      team.await();
      long ended = System.nanoTime();
      LockSupport.parkNanos(3_000_000);
      long without = System.nanoTime() - ended;
      team.launch(member -> LockSupport.parkNanos(1_000_000));
      team.launch(member -> {});
      assertThat(team.await()).isGreaterThanOrEqualTo(without);
      long least = team.await();
      for (int round = 0; round < 20; round++) {
        team.launch(member -> LockSupport.parkNanos(1_000_000));
        team.launch(member -> {});
        team.await();
        least = Math.min(least, team.await());
      }
      assertThat(least).as("behind a task that runs for a millisecond").isBetween(0L, 500_000L);
    }
  }

  @ParameterizedTest(name = "parking {0}")
  @ValueSource(booleans = {false, true})
  void aMemberThatWaitsForASlowerOneSaysForHowLong(boolean parking) {
    try (WorkerTeam team = new WorkerTeam("test", 2, parking ? PARKING : SPINNING)) {
      long launched = System.nanoTime();
      team.launch(
          member -> {
            work(member.index() == 0 ? 20_000_000 : 0);
            member.barrier();
            work(member.index() == 0 ? 20_000_000 : 0);
          });
      team.await();
      long together = System.nanoTime() - launched;
      // What lies between two tasks is no wait for others, also if the member slept through it.
      LockSupport.parkNanos(30_000_000);
      team.launch(member -> {});
      team.await();
      assertThat(team.waitNanos(1)).as("at the barrier and at the end").isBetween(30_000_000L, together);
      assertThat(team.waitNanos(0)).as("the slower one").isLessThan(team.waitNanos(1) / 2);
    }
  }

  private static void work(long nanos) {
    long end = System.nanoTime() + nanos;
    while (System.nanoTime() - end < 0) {
      Thread.onSpinWait();
    }
  }

  @Test
  void anErrorComesOutOfAwaitAsItIs() {
    try (WorkerTeam team = new WorkerTeam("test", 2)) {
      StackOverflowError error = new StackOverflowError();
      team.launch(
          member -> {
            throw error;
          });
      assertThatThrownBy(team::await).isSameAs(error);
    }
  }

  @ParameterizedTest(name = "{0} items, {1} members")
  @CsvSource({"0, 3", "1, 3", "2, 3", "3, 3", "10, 3", "17, 5", "2147483647, 4"})
  void sharesAreContiguousCompleteAndEven(int items, int size) {
    int[] begins = new int[size];
    int[] ends = new int[size];
    try (WorkerTeam team = new WorkerTeam("test", size)) {
      team.launch(
          member -> {
            begins[member.index()] = member.begin(items);
            ends[member.index()] = member.end(items);
          });
      team.await();
    }
    int at = 0;
    for (int i = 0; i < size; i++) {
      assertThat(begins[i]).isEqualTo(at);
      assertThat(ends[i] - begins[i]).isBetween(items / size, items / size + 1);
      at = ends[i];
    }
    assertThat(at).isEqualTo(items);
  }

  @Test
  void membersAreDaemonPlatformThreadsNamedAfterTheTeam() {
    Thread[] threads = new Thread[2];
    try (WorkerTeam team = new WorkerTeam("engine0", 2)) {
      team.launch(member -> threads[member.index()] = Thread.currentThread());
      team.await();
    }
    assertThat(threads[0].getName()).isEqualTo("engine0-worker-0");
    assertThat(threads[1].getName()).isEqualTo("engine0-worker-1");
    for (Thread thread : threads) {
      assertThat(thread.isDaemon()).isTrue();
      assertThat(thread.isVirtual()).isFalse();
      assertThat(thread.isAlive()).as("%s after close", thread.getName()).isFalse();
    }
  }

  @Test
  void aTeamThatWasNeverLaunchedCloses() {
    WorkerTeam team = new WorkerTeam("test", 3, PARKING);
    team.close();
    team.close();
    assertThatThrownBy(() -> team.launch(member -> {})).hasMessage("the team is closed");
  }

  @Test
  void closeWaitsForTheRunningTask() throws InterruptedException {
    CountDownLatch started = new CountDownLatch(2);
    AtomicInteger ended = new AtomicInteger();
    WorkerTeam team = new WorkerTeam("test", 2);
    team.launch(
        member -> {
          started.countDown();
          LockSupport.parkNanos(20_000_000);
          ended.incrementAndGet();
        });
    started.await();
    team.close();
    assertThat(ended).hasValue(2);
  }

  @Test
  void closeWakesMembersThatAreParked() {
    Thread[] threads = new Thread[2];
    WorkerTeam team = new WorkerTeam("test", 2, PARKING);
    team.launch(member -> threads[member.index()] = Thread.currentThread());
    team.await();
    for (Thread thread : threads) {
      Await.until(thread.getName() + " is parked", () -> thread.getState() == Thread.State.WAITING);
    }
    team.close();
    assertThat(threads).noneMatch(Thread::isAlive);
  }

  @Test
  void theWrongOrderOfCallsIsRefused() {
    assertThatThrownBy(() -> new WorkerTeam("test", 0)).hasMessage("a team of 0 members, expected at least 1");
    try (WorkerTeam team = new WorkerTeam("test", 1)) {
      assertThatThrownBy(team::await).hasMessage("nothing was launched");
      team.launch(member -> {});
      team.launch(member -> {});
      assertThatThrownBy(() -> team.launch(member -> {})).hasMessage("2 tasks were not awaited");
      team.await();
      team.await();
      Runnable closing = team::close;
      team.launch(member -> closing.run());
      assertThatThrownBy(team::await).hasMessage("a member cannot close its own team");
    }
  }

  @Test
  void anInterruptedLauncherStillWaitsAndStaysInterrupted() {
    AtomicInteger ended = new AtomicInteger();
    try (WorkerTeam team = new WorkerTeam("test", 2, PARKING)) {
      team.launch(
          member -> {
            LockSupport.parkNanos(5_000_000);
            ended.incrementAndGet();
          });
      Thread.currentThread().interrupt();
      team.await();
      assertThat(Thread.interrupted()).isTrue();
      assertThat(ended).hasValue(2);
    }
  }

  @ParameterizedTest(name = "parking {0}")
  @ValueSource(booleans = {false, true})
  void launcherAndMembersAllocateNothing(boolean parking) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    int size = 2;
    long[] ids = new long[size];
    AtomicLong sum = new AtomicLong();
    TeamTask task =
        member -> {
          sum.addAndGet(member.end(10) - member.begin(10));
          member.barrier();
        };
    try (WorkerTeam team = new WorkerTeam("test", size, parking ? PARKING : SPINNING)) {
      team.launch(member -> ids[member.index()] = Thread.currentThread().threadId());
      team.await();
      launch(team, task, 3_000);
      long[] before = threads.getThreadAllocatedBytes(ids);
      long ownBefore = threads.getCurrentThreadAllocatedBytes();
      launch(team, task, 1_000);
      long own = threads.getCurrentThreadAllocatedBytes() - ownBefore;
      long[] after = threads.getThreadAllocatedBytes(ids);
      assertThat(own).as("launcher").isZero();
      assertThat(after).as("members").isEqualTo(before);
    }
    assertThat(sum).hasValue(40_000);
  }

  private static void launch(WorkerTeam team, TeamTask task, int times) {
    for (int i = 0; i < times; i++) {
      team.launch(task);
      team.await();
    }
  }
}
