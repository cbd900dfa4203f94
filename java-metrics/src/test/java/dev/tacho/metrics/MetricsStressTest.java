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
@Timeout(300)
class MetricsStressTest {
  private static final int SEQUENCES = 64;
  private static final int LIFE_STEPS = 50;
  private static final int SCRAPES = 2_000;
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

  /** Returns the count of a family, and sees to it that it is that of the infinite bucket in every family. */
  private static void check(String text) {
    String infinite = "";
    int counts = 0;
    for (String line : text.lines().toList()) {
      String value = line.substring(line.lastIndexOf(' ') + 1);
      if (line.contains("le=\"+Inf\"")) {
        infinite = value;
      } else if (line.contains("_count{")) {
        assertThat(value).as(line).isEqualTo(infinite);
        counts++;
      }
    }
    assertThat(counts).isGreaterThan(10);
  }

  private static double value(String text, String sample) {
    return text.lines().filter(line -> line.startsWith(sample))
        .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1))).sum();
  }

  private static void balanced(String text) {
    assertThat(value(text, "tacho:requests_accepted_total{") - value(text, "vllm:request_success_total{"))
        .isEqualTo(value(text, "vllm:num_requests_running{") + value(text, "vllm:num_requests_waiting{"));
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
            String text = source.exposition(ExpositionFormat.TEXT_0_0_4);
            check(text);
            if (value(text, "tacho:events_lost_total{") == 0) {
              balanced(text);
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
      while (lastStep.get() - from < (80 << 20) / (SEQUENCES * 8)) {
        LockSupport.parkNanos(STEP_NANOS);
      }
    });
    done.set(true);
    for (Thread thread : threads) {
      thread.join();
    }
    source.outputWriter().noMorePickUps(lastStep.get());
    source.outputWriter().commit();
    String text = source.exposition(ExpositionFormat.TEXT_0_0_4);
    assertThat(value(text, "tacho:events_lost_total{")).isPositive();
    assertThat(value(text, "tacho:ring_full_total{")).isPositive();
    assertThat(value(text, "vllm:generation_tokens_total{")).isEqualTo((double) tokens);
    assertThat(value(text, "vllm:request_success_total{")).isEqualTo((double) finished);
    assertThat(value(text, "tacho:requests_accepted_total{")).isEqualTo((double) accepted);
    check(text);
    balanced(text);
    source.close();
  }
}
