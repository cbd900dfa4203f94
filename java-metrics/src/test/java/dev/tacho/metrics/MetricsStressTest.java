package dev.tacho.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Recording, picking up, draining and scraping on threads of their own, with a collector that stands still once. */
@Timeout(600)
class MetricsStressTest {
  private static final int SEQUENCES = 64;
  private static final int LIFE_STEPS = 50;
  private static final int SCRAPES = 10_000;
  private static final long STEP_NANOS = 50_000;
  private static final double SHARE = 0.3;

  private final MetricsCollector collector = MetricsCollector.onDemand();
  private final EngineMetricsSource source = EngineMetricsSource.open(EngineMetricsOptions.builder("m", 4096)
      .registry(MetricsRegistry.create(collector)).logInterval(Duration.ZERO).build());
  private final AtomicBoolean done = new AtomicBoolean();
  private final AtomicBoolean flood = new AtomicBoolean();
  private final AtomicLong lastStep = new AtomicLong();
  private long accepted;
  private long finished;
  private long tokens;

  /** Steps of sequences that live for some steps each, as fast as it goes. */
  private void runEngine() {
    EventWriter events = source.engineWriter();
    StepShape shape = new StepShape();
    int[] generations = new int[SEQUENCES];
    for (long step = 1; !done.get(); step++) {
      for (int slot = 0; slot < SEQUENCES; slot++) {
        if ((step + slot) % LIFE_STEPS == 1 || step == 1) {
          generations[slot]++;
          events.queued(slot, generations[slot], step, step, 4, 0, 0, 1, 0);
          events.scheduled(slot, generations[slot], step);
          source.counters().addAsOnlyWriter(EngineCounter.ACCEPTED, 1);
          accepted++;
        }
      }
      events.step(step, step, step, SEQUENCES, shape);
      int running = SEQUENCES;
      for (int slot = 0; slot < SEQUENCES; slot++) {
        events.tokens(slot, generations[slot], 1);
        if ((step + slot) % LIFE_STEPS == 0) {
          events.finished(slot, generations[slot], FinishReason.LENGTH);
          source.counters().addAsOnlyWriter(EngineCounter.FINISHED_LENGTH, 1);
          finished++;
          running--;
        }
      }
      tokens += SEQUENCES;
      source.counters().addAsOnlyWriter(EngineCounter.GENERATION_TOKENS, SEQUENCES);
      events.snapshot(running, 0, 0, 1, 1, 0, 0, 0);
      events.commit();
      lastStep.set(step);
      if (!flood.get()) {
        LockSupport.parkNanos(STEP_NANOS);
      }
    }
  }

  private void pickUp() {
    EventWriter outputs = source.outputWriter();
    long picked = 0;
    while (!done.get()) {
      long step = lastStep.get();
      if (step > picked) {
        outputs.pickUp(step, step);
        outputs.commit();
        picked = step;
      }
      LockSupport.parkNanos(STEP_NANOS / 2);
    }
  }

  /** What a scrape says, read in one pass, as thousands are read while the engine runs. */
  private static final class Reading {
    private static final int MIN_HISTOGRAMS = 10;

    private final String text;
    private double accepted;
    private double finished;
    private double unfinished;
    private double lost;

    /** Reads a text, and sees to it that the count of every histogram is that of its infinite bucket. */
    Reading(String text) {
      this.text = text;
      int counts = 0;
      int bucket = 0;
      int bucketEnd = 0;
      for (int at = 0; at < text.length(); ) {
        int end = text.indexOf('\n', at);
        int labels = text.charAt(at) == '#' ? -1 : text.indexOf('{', at);
        if (labels >= 0 && labels < end) {
          if (text.startsWith("_bucket", labels - 7)) {
            bucket = at;
            bucketEnd = end;
          } else if (text.startsWith("_count", labels - 6)) {
            String infinite = text.substring(bucket, bucketEnd);
            assertThat(infinite).contains("le=\"+Inf\"");
            assertThat(value(end)).as(infinite).isEqualTo(value(bucketEnd));
            counts++;
          } else if (text.startsWith("tacho:requests_accepted_total{", at)) {
            accepted += value(end);
          } else if (text.startsWith("vllm:request_success_total{", at)) {
            finished += value(end);
          } else if (text.startsWith("vllm:num_requests_running{", at)
              || text.startsWith("vllm:num_requests_waiting{", at)) {
            unfinished += value(end);
          } else if (text.startsWith("tacho:events_lost_total{", at)) {
            lost += value(end);
          }
        }
        at = end + 1;
      }
      assertThat(counts).as("histograms").isGreaterThan(MIN_HISTOGRAMS);
    }

    private double value(int end) {
      return Double.parseDouble(text.substring(text.lastIndexOf(' ', end) + 1, end));
    }

    void assertBalanced() {
      assertThat(accepted - finished).as("accepted - finished = running + waiting").isEqualTo(unfinished);
    }
  }

  private static double value(String text, String sample) {
    return text.lines().filter(line -> line.startsWith(sample))
        .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1))).sum();
  }

  @Test
  void scrapesAreWholeAndAfterALossCountersEqualARecount() throws InterruptedException {
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    AtomicInteger scrapes = new AtomicInteger();
    List<Thread> threads = new ArrayList<>();
    threads.add(Thread.ofPlatform().start(this::runEngine));
    threads.add(Thread.ofPlatform().start(this::pickUp));
    long end = StressTime.end(SHARE);
    for (int i = 0; i < 2; i++) {
      threads.add(Thread.ofPlatform().start(() -> {
        try {
          while (!StressTime.isOver(end) || scrapes.get() < SCRAPES) {
            Reading scrape = new Reading(source.exposition(ExpositionFormat.TEXT_0_0_4));
            if (scrape.lost == 0) {
              scrape.assertBalanced();
            }
            scrapes.incrementAndGet();
          }
        } catch (Throwable e) {
          failures.add(e);
        }
      }));
    }
    for (Thread thread : threads.subList(2, 4)) {
      thread.join();
    }
    assertThat(failures).isEmpty();
    // Nobody drains until more was written than the ring holds: 64 MiB, 8 bytes and a little more a token.
    flood.set(true);
    collector.drainThen(() -> {
      long from = lastStep.get();
      Await.until("80 MiB are written", () -> lastStep.get() - from >= (80 << 20) / (SEQUENCES * 8));
    });
    done.set(true);
    for (Thread thread : threads) {
      Await.ended(thread);
    }
    source.outputWriter().noMorePickUps(lastStep.get());
    source.outputWriter().commit();
    String text = source.exposition(ExpositionFormat.TEXT_0_0_4);
    assertThat(value(text, "tacho:events_lost_total{")).isPositive();
    assertThat(value(text, "tacho:ring_full_total{")).isPositive();
    assertThat(value(text, "vllm:generation_tokens_total{")).isEqualTo((double) tokens);
    assertThat(value(text, "vllm:request_success_total{")).isEqualTo((double) finished);
    assertThat(value(text, "tacho:requests_accepted_total{")).isEqualTo((double) accepted);
    new Reading(text).assertBalanced();
    source.close();
  }
}
