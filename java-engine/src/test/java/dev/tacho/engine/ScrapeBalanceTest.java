package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * In every scrape, the sequences accepted less those that ended are those that run and those that wait, and each
 * histogram's count is that of its infinite bucket (user case 34).
 */
@Timeout(300)
class ScrapeBalanceTest {
  private static final int SCRAPES = 10_000;
  private static final int SCRAPERS = 2;
  private static final int IN_FLIGHT = 40;

  /** The numbers of one scrape. */
  private record Scrape(double accepted, double finished, double running, double waiting, double usage) {
    /** Reads the text, and sees to it that each histogram's count is that of its infinite bucket. */
    static Scrape of(Engine engine) {
      double accepted = 0;
      double finished = 0;
      double running = 0;
      double waiting = 0;
      double usage = 0;
      int histograms = 0;
      double infinite = -1;
      for (String line : engine.metrics().exposition().lines().toList()) {
        if (line.startsWith("#")) {
          continue;
        }
        double value = Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1));
        switch (line.substring(0, line.indexOf('{'))) {
          case "tacho:requests_accepted_total" -> accepted += value;
          case "vllm:request_success_total" -> finished += value;
          case "vllm:num_requests_running" -> running += value;
          case "vllm:num_requests_waiting" -> waiting += value;
          case "vllm:kv_cache_usage_perc" -> usage += value;
          default -> {
            if (line.contains("le=\"+Inf\"")) {
              infinite = value;
            } else if (line.contains("_count{")) {
              assertThat(value).as(line).isEqualTo(infinite);
              histograms++;
            }
          }
        }
      }
      assertThat(histograms).isGreaterThan(10);
      return new Scrape(accepted, finished, running, waiting, usage);
    }

    double open() {
      return running + waiting;
    }

    Scrape assertBalanced() {
      assertThat(accepted - finished).as("%s", this).isEqualTo(open());
      return this;
    }
  }

  /** Requests come and go in every way while other threads look. */
  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {71})
  void everyScrapeBalances(long seed) throws InterruptedException {
    ScriptedRunner runner =
        ScriptedRunner.saying("once upon a time there was a fox. ".repeat(3))
            .during(step -> LockSupport.parkNanos(20_000));
    AtomicInteger scrapes = new AtomicInteger();
    AtomicInteger seenOpen = new AtomicInteger();
    AtomicBoolean enough = new AtomicBoolean();
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    try (Engine engine = ScriptedEngine.over(runner).maxNumSeqs(6).numBlocks(300).open()) {
      List<Thread> scrapers = new ArrayList<>();
      for (int i = 0; i < SCRAPERS; i++) {
        scrapers.add(Thread.ofPlatform().start(() -> {
          try {
            while (scrapes.incrementAndGet() <= SCRAPES) {
              if (Scrape.of(engine).assertBalanced().open() > 0) {
                seenOpen.incrementAndGet();
              }
            }
          } catch (Throwable e) {
            failures.add(e);
          } finally {
            enough.set(true);
          }
        }));
      }
      Random random = new Random(seed);
      Semaphore inFlight = new Semaphore(IN_FLIGHT);
      List<GenerationHandle> handles = new ArrayList<>();
      while (!enough.get()) {
        inFlight.acquire();
        SamplingParams params =
            SamplingParams.greedy().toBuilder()
                .n(random.nextInt(5) == 0 ? 3 : 1)
                .maxTokens(random.nextInt(1, 60))
                .stop(random.nextInt(3) == 0 ? List.of("fox", "upon") : List.of())
                .build();
        GenerationHandle handle = engine.submit(GenerationRequest.of("a".repeat(random.nextInt(1, 60)), params));
        var _ = handle.completion().whenComplete((completion, failure) -> inFlight.release());
        handles.add(handle);
        if (random.nextInt(4) == 0) {
          handles.get(random.nextInt(Math.max(0, handles.size() - IN_FLIGHT), handles.size())).cancel();
        }
      }
      for (Thread scraper : scrapers) {
        scraper.join();
      }
      handles.forEach(handle -> handle.completion().exceptionally(e -> null).join());
      assertThat(failures).isEmpty();
      Scrape last = Scrape.of(engine).assertBalanced();
      assertThat(last.open()).isZero();
      assertThat((long) last.accepted()).isEqualTo(engine.group().engines().getFirst().accepted());
      assertThat(seenOpen.get()).as("scrapes that saw open requests").isGreaterThan(SCRAPES / 2);
    }
  }

  @Test
  void aLongPrefillIsRunningWhileItRuns() throws Exception {
    Semaphore steps = new Semaphore(0);
    Semaphore inStep = new Semaphore(0);
    ScriptedRunner runner = ScriptedRunner.endless().during(step -> {
      inStep.release();
      steps.acquire();
    });
    try (Engine engine = ScriptedEngine.open(runner)) {
      GenerationHandle handle =
          engine.submit(GenerationRequest.of("a".repeat(200), SamplingParams.greedy().withMaxTokens(2)));
      inStep.acquire();
      Scrape scrape = Scrape.of(engine).assertBalanced();
      assertThat(scrape.running()).isEqualTo(1);
      assertThat(scrape.waiting()).isZero();
      assertThat(scrape.usage()).isPositive();
      steps.release(10);
      handle.completion().get();
    }
  }
}
