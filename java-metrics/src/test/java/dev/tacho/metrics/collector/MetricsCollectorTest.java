package dev.tacho.metrics.collector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.logger.StatLoggerManager;
import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.stats.FinishedRequestStats;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class MetricsCollectorTest {
  private final MetricsCollector collector = MetricsCollector.onDemand();
  private final EventRing engineRing = new EventRing();
  private final EventRing outputRing = new EventRing();
  private final EventWriter engine = EventWriter.into(engineRing);
  private final EventWriter output = EventWriter.into(outputRing);
  private final StepShape shape = new StepShape();
  private final Sums sums = new Sums();
  private long restarts;
  private long lost;

  private EngineFeed join(StatLogger... loggers) {
    EngineFeed feed = new EngineFeed(0, null, new StatLoggerManager(List.of(loggers), Duration.ZERO, 0),
        report -> {
          lost = report.eventsLost();
          restarts = report.restarts();
        }, engineRing, outputRing);
    collector.join(feed);
    return feed;
  }

  @Test
  void aStepWithoutItsPickUpStaysPending() {
    join(sums);
    queueAndSchedule(0, 0);
    step(1, 10, () -> {
      engine.tokens(0, 0, 1);
      snapshot(1, 0);
    });
    step(2, 20, () -> engine.tokens(0, 0, 1));
    collector.drain();
    assertThat(sums.tokens).isZero();
    pickUp(1, 35);
    collector.drain();
    assertThat(sums.tokens).isEqualTo(1);
    assertThat(sums.firstTokens).containsExactly(35e-9);
    pickUp(2, 36);
    collector.drain();
    assertThat(sums.tokens).isEqualTo(2);
    assertThat(sums.latencies).containsExactly(10e-9);
  }

  @Test
  void aLostPickUpIsMadeUpByTheNext() {
    join(sums);
    queueAndSchedule(0, 0);
    step(1, 10, () -> engine.tokens(0, 0, 1));
    step(2, 20, () -> engine.tokens(0, 0, 1));
    pickUp(2, 40);
    collector.drain();
    assertThat(sums.tokens).isEqualTo(2);
    assertThat(sums.iterations).isEqualTo(2);
  }

  @Test
  void aReusedSlotIsNotCreditedWithLateRecordsOfTheOneBefore() {
    join(sums);
    queueAndSchedule(7, 0);
    step(1, 10, () -> engine.tokens(7, 0, 1));
    engine.ended(7, 0, FinishReason.ABORT);
    queueAndSchedule(7, 1);
    step(2, 20, () -> {
      engine.tokens(7, 0, 5);
      engine.tokens(7, 1, 2);
      engine.finished(7, 1, FinishReason.LENGTH);
    });
    pickUp(1, 11);
    pickUp(2, 21);
    collector.drain();
    assertThat(sums.tokens).isEqualTo(3);
    assertThat(sums.aborted).isEqualTo(1);
    assertThat(sums.finished).singleElement()
        .satisfies(r -> assertThat(r.generatedTokens()).isEqualTo(2));
  }

  @Test
  void anEndWaitsForTheOutputsBeforeIt() {
    join(sums);
    queueAndSchedule(0, 0);
    step(1, 10, () -> engine.tokens(0, 0, 1));
    engine.ended(0, 0, FinishReason.ABORT);
    engine.commit();
    collector.drain();
    assertThat(sums.aborted).isZero();
    pickUp(1, 11);
    collector.drain();
    assertThat(sums.tokens).isEqualTo(1);
    assertThat(sums.aborted).isEqualTo(1);
  }

  @Test
  void aStopStringEndsTheSequenceAtItsOutputAndCountsWhenTheEngineLetsItGo() {
    join(sums);
    queueAndSchedule(0, 0);
    step(1, 10, () -> engine.tokens(0, 0, 3));
    output.pickUp(1, 12);
    output.stopped(0, 0);
    output.commit();
    step(2, 20, () -> engine.tokens(0, 0, 1));
    pickUp(2, 22);
    collector.drain();
    assertThat(sums.tokens).as("the output after the stop belongs to nobody").isEqualTo(3);
    assertThat(sums.finished).as("the engine still has it").isEmpty();
    engine.ended(0, 0, FinishReason.STOP);
    engine.commit();
    collector.drain();
    assertThat(sums.finished).singleElement().satisfies(r -> {
      assertThat(r.reason()).isEqualTo(FinishReason.STOP);
      assertThat(r.endToEndSeconds()).isEqualTo(12e-9);
      assertThat(r.generatedTokens()).isEqualTo(3);
    });
    assertThat(sums.iterations).isEqualTo(2);
  }

  @Test
  void aStopStringGoesBeforeAnAbortThatComesLater() {
    join(sums);
    queueAndSchedule(0, 0);
    step(1, 10, () -> engine.tokens(0, 0, 2));
    output.pickUp(1, 12);
    output.stopped(0, 0);
    output.commit();
    engine.ended(0, 0, FinishReason.ABORT);
    engine.commit();
    collector.drain();
    assertThat(sums.aborted).isZero();
    assertThat(sums.finished).singleElement()
        .satisfies(r -> assertThat(r.reason()).isEqualTo(FinishReason.STOP));
  }

  /** The equation holds for whoever looks between two drains, also while a step waits to be picked up. */
  @Test
  void nothingAfterAStepThatIsNotPickedUpIsShown() {
    join(sums);
    engine.queued(0, 0, 1, 0, 8, 0, 0, 1, 0);
    engine.scheduled(0, 0, 2);
    snapshot(1, 0);
    collector.drain();
    assertBalance(1, 1, 0);
    engine.queued(1, 0, 9, 8, 8, 0, 0, 1, 0);
    step(1, 10, () -> {
      engine.tokens(0, 0, 1);
      engine.finished(0, 0, FinishReason.LENGTH);
      snapshot(0, 1);
    });
    engine.ended(1, 0, FinishReason.ABORT);
    snapshot(0, 0);
    collector.drain();
    assertBalance(1, 1, 0);
    pickUp(1, 12);
    collector.drain();
    assertBalance(2, 0, 0);
    assertThat(sums.finished).hasSize(1);
    assertThat(sums.aborted).isEqualTo(1);
  }

  @Test
  void whenNoPickUpWillFollowStepsCountAllTheSame() {
    join(sums);
    queueAndSchedule(0, 0);
    step(1, 10, () -> engine.tokens(0, 0, 1));
    collector.drain();
    assertThat(sums.tokens).isZero();
    output.noMorePickUps(13);
    output.commit();
    step(2, 20, () -> engine.tokens(0, 0, 1));
    collector.drain();
    assertThat(sums.tokens).isEqualTo(2);
    assertThat(sums.firstTokens).containsExactly(13e-9);
  }

  @Test
  void anOutputThreadThatNeverPicksUpHoldsUpFourMebibytesAtMost() {
    join(sums);
    queueAndSchedule(0, 0);
    for (int i = 1; i <= 600; i++) {
      step(i, i, () -> {
        for (int j = 0; j < 1000; j++) {
          engine.tokens(0, 0, 1);
        }
      });
      collector.drain();
    }
    assertThat(sums.tokens).isGreaterThanOrEqualTo(500_000);
    assertThat(lost).isZero();
  }

  @Test
  void aSlotMayBeUsedAgainAndAgainWhileASingleStepWaits() {
    join(sums);
    int generations = 100;
    for (int i = 0; i < generations; i++) {
      int generation = i;
      queueAndSchedule(0, generation);
      step(i + 1, 10, () -> {
        engine.tokens(0, generation, 1);
        engine.finished(0, generation, FinishReason.LENGTH);
      });
    }
    collector.drain();
    assertThat(sums.finished).isEmpty();
    pickUp(generations, 11);
    collector.drain();
    assertThat(sums.accepted).isEqualTo(generations);
    assertThat(sums.finished).hasSize(generations);
    assertThat(sums.tokens).isEqualTo(generations);
  }

  @Test
  void aStopStringGoesBeforeTheEnginesOwnReason() {
    join(sums);
    queueAndSchedule(0, 0);
    step(1, 10, () -> {
      engine.tokens(0, 0, 1);
      engine.finished(0, 0, FinishReason.LENGTH);
    });
    output.pickUp(1, 12);
    output.stopped(0, 0);
    output.commit();
    collector.drain();
    assertThat(sums.finished).singleElement()
        .satisfies(r -> assertThat(r.reason()).isEqualTo(FinishReason.STOP));
  }

  @Test
  void aSequenceThatFailsInAStepHasAnOutputWithoutTokens() {
    join(sums);
    queueAndSchedule(0, 0);
    step(1, 10, () -> engine.finished(0, 0, FinishReason.ERROR));
    pickUp(1, 12);
    collector.drain();
    assertThat(sums.firstTokens).containsExactly(12e-9);
    assertThat(sums.finished).singleElement()
        .satisfies(r -> assertThat(r.prefillSeconds()).isEqualTo(8e-9));
  }

  @Test
  void aStepWithoutOutputsIsNoIteration() {
    join(sums);
    engine.step(1, 10, 5, 0, shape);
    engine.snapshot(1, 0, 0, 5, 10, 0, 0, 0);
    engine.commit();
    collector.drain();
    assertThat(sums.iterations).isZero();
    assertThat(sums.usage).isEqualTo(0.5);
  }

  @Test
  void oneFailureRestartsTheCollectionAndASecondEndsIt() {
    join(sums);
    spoil();
    queueAndSchedule(0, 0);
    collector.drain();
    assertThat(restarts).isEqualTo(1);
    queueAndSchedule(1, 0);
    step(1, 10, () -> engine.tokens(1, 0, 4));
    pickUp(1, 12);
    collector.drain();
    assertThat(sums.tokens).isEqualTo(4);
    spoil();
    collector.drain();
    step(2, 20, () -> engine.tokens(1, 0, 1));
    pickUp(2, 22);
    collector.drain();
    assertThat(sums.tokens).isEqualTo(4);
    assertThat(restarts).isEqualTo(1);
  }

  @Test
  void numbersOfNamesAreTheEngineThreadsAlone() {
    join(sums);
    engine.name("of the engine thread");
    engine.commit();
    collector.drain();
    assertThat(restarts).isZero();
    output.name("with the same number");
    output.commit();
    collector.drain();
    assertThat(restarts).as("the record is refused").isEqualTo(1);
  }

  @Test
  void aLoggerThatThrowsIsLeftOutAndHarmsNobody() {
    int[] calls = new int[1];
    join((index, scheduler, iteration) -> {
      calls[0]++;
      throw new IllegalStateException("plug-in");
    }, sums);
    engine.snapshot(2, 0, 0, 1, 1, 0, 0, 0);
    engine.snapshot(3, 0, 0, 1, 1, 0, 0, 0);
    engine.commit();
    collector.drain();
    assertThat(calls[0]).isEqualTo(1);
    assertThat(sums.running).isEqualTo(3);
    assertThat(restarts).isZero();
  }

  @Test
  void leavingDrainsForTheLastTimeAndClosesTheLoggers() {
    EngineFeed feed = join(sums);
    queueAndSchedule(0, 0);
    step(1, 10, () -> engine.tokens(0, 0, 1));
    collector.leave(feed);
    assertThat(sums.tokens).as("nobody will pick it up any more").isEqualTo(1);
    assertThat(sums.closed).isEqualTo(1);
    collector.leave(feed);
    assertThat(sums.closed).isEqualTo(1);
  }

  @Test
  void whatNobodyDrainsIsLostAndCounted() {
    join(sums);
    for (int i = 0; i < 1_000_000; i++) {
      engine.tokens(0, 0, 1);
    }
    engine.commit();
    collector.drain();
    assertThat(lost).isPositive();
  }

  @Test
  void theSharedCollectorDrainsOnItsOwnThread() throws InterruptedException {
    CountDownLatch seen = new CountDownLatch(1);
    StatLogger logger = (index, scheduler, iteration) -> {
      if (scheduler != null && scheduler.running() == 5
          && Thread.currentThread().getName().equals("tacho-metrics-collector")) {
        seen.countDown();
      }
    };
    EngineFeed feed = new EngineFeed(0, null, new StatLoggerManager(List.of(logger), Duration.ZERO, 0),
        report -> { }, engineRing, outputRing);
    MetricsCollector.shared().join(feed);
    try {
      engine.snapshot(5, 0, 0, 1, 1, 0, 0, 0);
      engine.commit();
      assertThat(seen.await(30, TimeUnit.SECONDS)).isTrue();
    } finally {
      MetricsCollector.shared().leave(feed);
    }
  }

  @Test
  void theThreadOfAnIdleEngineRestsBetweenTwoDrains() throws InterruptedException {
    MetricsCollector threaded = MetricsCollector.threaded();
    BlockingQueue<Long> drains = new LinkedBlockingQueue<>();
    EngineFeed feed = new EngineFeed(0, null, new StatLoggerManager(List.of(), Duration.ZERO, 0),
        report -> drains.add(report.nanos()), engineRing, outputRing);
    threaded.join(feed);
    long first = Objects.requireNonNull(drains.poll(30, TimeUnit.SECONDS));
    long second = Objects.requireNonNull(drains.poll(30, TimeUnit.SECONDS));
    assertThat(second - first).isGreaterThan(RingPace.LONGEST_NANOS / 2);
    threaded.leave(feed);
  }

  @Test
  void aLineOfTheLogEndsTheRestWhenItIsDue() {
    long begin = System.nanoTime();
    EngineFeed feed = new EngineFeed(0, null, new StatLoggerManager(List.of(), Duration.ofMillis(250), begin),
        report -> { }, engineRing, outputRing);
    assertThat(feed.restNanos(begin + 100_000_000)).isEqualTo(RingPace.LONGEST_NANOS);
    assertThat(feed.restNanos(begin + 200_000_000)).isEqualTo(50_000_000);
    assertThat(feed.restNanos(begin + 249_999_999)).isEqualTo(RingPace.SHORTEST_NANOS);
  }

  @Test
  void aThreadThatDiesIsStartedAgainOnce() throws InterruptedException {
    MetricsCollector threaded = MetricsCollector.threaded();
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    CountDownLatch died = new CountDownLatch(2);
    EngineFeed feed = new EngineFeed(0, null, new StatLoggerManager(List.of(sums), Duration.ZERO, 0),
        report -> {
          Thread current = Thread.currentThread();
          if (current.getName().equals("tacho-metrics-collector") && threads.add(current)) {
            current.setUncaughtExceptionHandler((thread, failure) -> died.countDown());
            throw new InternalError("test");
          }
        }, engineRing, outputRing);
    threaded.join(feed);
    assertThat(died.await(30, TimeUnit.SECONDS)).isTrue();
    engine.snapshot(5, 0, 0, 1, 1, 0, 0, 0);
    engine.commit();
    threaded.drain();
    assertThat(sums.running).as("a scrape still drains").isEqualTo(5);
    threaded.leave(feed);
    assertThat(threads).hasSize(2);
  }

  private void snapshot(int running, int waiting) {
    engine.snapshot(running, waiting, 0, 1, 1, 0, 0, 0);
    engine.commit();
  }

  private void assertBalance(int accepted, int running, int waiting) {
    assertThat(sums.accepted).isEqualTo(accepted);
    assertThat(sums.running).isEqualTo(running);
    assertThat(sums.waiting).isEqualTo(waiting);
    assertThat(sums.accepted - sums.finished.size() - sums.aborted).isEqualTo(running + waiting);
  }

  private void queueAndSchedule(int slot, int generation) {
    engine.queued(slot, generation, 1, 0, 8, 0, 0, 1, 0);
    engine.scheduled(slot, generation, 2);
    engine.commit();
  }

  private void step(long number, long batchNanos, Runnable outputs) {
    engine.step(number, batchNanos, batchNanos, 1, shape);
    outputs.run();
    engine.commit();
  }

  private void pickUp(long step, long nanos) {
    output.pickUp(step, nanos);
    output.commit();
  }

  /** Writes a record of a type that does not exist. */
  private void spoil() {
    long at = engineRing.claim(8, 1);
    engineRing.memory().set(ValueLayout.JAVA_LONG, at, 0xFF);
    engineRing.publishRelease();
  }

  /** Adds up what it gets. */
  private static final class Sums implements StatLogger {
    final List<Double> firstTokens = new ArrayList<>();
    final List<Double> latencies = new ArrayList<>();
    final List<FinishedRequestStats> finished = new ArrayList<>();
    long tokens;
    long aborted;
    int iterations;
    int running;
    int waiting;
    long accepted;
    double usage;
    int closed;

    @Override
    public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
      if (scheduler != null) {
        running = scheduler.running();
        waiting = scheduler.waiting();
        usage = scheduler.kvCacheUsage();
      }
      if (iteration != null) {
        accepted += iteration.accepted();
        iterations += iteration.outputs() > 0 ? 1 : 0;
        tokens += iteration.generationTokens();
        aborted += iteration.ended(FinishReason.ABORT);
        finished.addAll(iteration.finished());
        for (double value : iteration.timesToFirstToken().toArray()) {
          firstTokens.add(value);
        }
        for (double value : iteration.interTokenLatencies().toArray()) {
          latencies.add(value);
        }
      }
    }

    @Override
    public void close() {
      closed++;
    }
  }
}
