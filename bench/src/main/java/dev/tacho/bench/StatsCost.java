package dev.tacho.bench;

import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import dev.tacho.engine.GenerationHandle;
import dev.tacho.engine.GenerationRequest;
import dev.tacho.engine.SamplingParams;
import dev.tacho.metrics.perf.DevicePeaks;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * What statistics cost: tokens a second of an engine that records them over those of one that does not, both in this
 * process. About two and a half minutes on a quiet machine.
 *
 * <p>The same work, a fifth of a second long, is done in turns: on, off, off, on, and the other way round the next
 * time. The ratio of such a round is free of whatever changes steadily meanwhile. The engines are opened anew several
 * times, in either order, as where their memory lies makes more of a difference than statistics do. What is said is the
 * median of the rounds' ratios, with the interval that holds the true median in 95 of 100 measurements whatever the
 * distribution is (order statistics). A round in which other processes took more than a twentieth of the CPUs does not
 * count and is done again, up to three times as many rounds as asked for.
 *
 * <p>Arguments: the model's file and, if not {@value #ROUNDS}, the rounds for each opening.
 */
public final class StatsCost {
  /** Statistics may take half a percent of the tokens a second. */
  private static final double GOAL = 0.995;

  private static final int[] RUNNING = {1, 64};
  private static final int OPENINGS = 4;
  private static final int ROUNDS = 16;
  private static final int ATTEMPTS_PER_ROUND = 3;
  private static final double MAX_FOREIGN_SHARE = 0.05;
  private static final int TOKENS = 64;
  private static final int CONTEXT = 128;
  private static final long RUN_NANOS = 200_000_000;
  private static final long WARM_UP_NANOS = 2_000_000_000;

  /** Standard deviations of a normal distribution on either side of its middle that hold 95 of 100. */
  private static final double DEVIATIONS = 1.96;

  /** Of each engine: half of the CPUs, as they would not be divided evenly between engines opened one by one. */
  private static final int THREADS = Math.max(1, Runtime.getRuntime().availableProcessors() / 2);

  /** Given, so that nothing is measured beside the runs. */
  private static final DevicePeaks PEAKS = new DevicePeaks(1e12, 1e11);

  private StatsCost() {}

  /** Measures and prints a line for each number of running requests. */
  public static void main(String[] arguments) throws IOException {
    if (arguments.length < 1 || arguments.length > 2) {
      throw new IllegalArgumentException(
          "expected the model's file and perhaps a number of rounds, found " + Arrays.toString(arguments));
    }
    Path model = Path.of(arguments[0]);
    int rounds = arguments.length == 1 ? ROUNDS : Integer.parseInt(arguments[1]);
    List<Rounds> results = Arrays.stream(RUNNING).mapToObj(Rounds::new).toList();
    for (int opening = 0; opening < OPENINGS; opening++) {
      boolean offFirst = opening % 2 == 1;
      try (Engine first = open(model, offFirst);
          Engine second = open(model, !offFirst)) {
        Engine on = offFirst ? second : first;
        Engine off = offFirst ? first : second;
        for (Rounds result : results) {
          result.measure(on, off, rounds);
        }
      }
    }
    System.out.printf(Locale.ROOT, "%8s %7s %10s %10s %18s   %s%n", "running", "rounds", "disturbed", "on / off",
        "95 % interval", "goal " + GOAL);
    results.forEach(Rounds::print);
  }

  private static Engine open(Path model, boolean withoutStats) {
    return Engine.open(
        EngineConfig.builder()
            .model(model)
            .maxModelLen(CONTEXT)
            .maxNumSeqs(RUNNING[RUNNING.length - 1])
            .threads(THREADS)
            .enablePrefixCaching(false)
            .disableLogStats(withoutStats)
            .devicePeaks(PEAKS)
            .build());
  }

  /** Works for a while; returns how much of it makes one run. */
  private static int warmUp(Engine engine, int running) {
    long start = System.nanoTime();
    long last;
    do {
      last = nanos(engine, running, 1);
    } while (System.nanoTime() - start < WARM_UP_NANOS);
    return (int) Math.max(1, RUN_NANOS / last);
  }

  /** Time for as many batches of requests, one after the other. */
  private static long nanos(Engine engine, int running, int batches) {
    SamplingParams sampling = SamplingParams.builder().temperature(0).maxTokens(TOKENS).ignoreEos(true).build();
    long start = System.nanoTime();
    for (int batch = 0; batch < batches; batch++) {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < running; i++) {
        int[] prompt = {1, 5 + i, 7, 9};
        handles.add(engine.submit(GenerationRequest.builder().prompt(prompt).sampling(sampling).build()));
      }
      for (GenerationHandle handle : handles) {
        int tokens = handle.completion().join().usage().generatedTokens();
        if (tokens != TOKENS) {
          throw new IllegalStateException("a request brought " + tokens + " tokens instead of " + TOKENS);
        }
      }
    }
    return System.nanoTime() - start;
  }

  /** The rounds with so many running requests. */
  private static final class Rounds {
    private final int running;
    private final List<Double> ratios = new ArrayList<>();
    private int disturbed;

    Rounds(int running) {
      this.running = running;
    }

    /** Adds so many undisturbed rounds, if there are as many. */
    void measure(Engine on, Engine off, int rounds) throws IOException {
      int batches = warmUp(on, running);
      warmUp(off, running);
      int enough = ratios.size() + rounds;
      for (int attempt = 0; attempt < ATTEMPTS_PER_ROUND * rounds && ratios.size() < enough; attempt++) {
        Engine outer = attempt % 2 == 0 ? on : off;
        Engine inner = attempt % 2 == 0 ? off : on;
        CpuLoad load = CpuLoad.start();
        double outerNanos = nanos(outer, running, batches);
        double innerNanos = nanos(inner, running, batches);
        innerNanos += nanos(inner, running, batches);
        outerNanos += nanos(outer, running, batches);
        if (load.foreignShare() > MAX_FOREIGN_SHARE) {
          disturbed++;
        } else {
          ratios.add(outer == on ? innerNanos / outerNanos : outerNanos / innerNanos);
        }
      }
    }

    void print() {
      double[] sorted = ratios.stream().mapToDouble(Double::doubleValue).sorted().toArray();
      int n = sorted.length;
      if (n == 0) {
        System.out.printf(Locale.ROOT, "%8d %7d %10d   nothing was measured undisturbed%n", running, n, disturbed);
        return;
      }
      double median = (sorted[n / 2] + sorted[(n - 1) / 2]) / 2;
      int outside = (int) Math.max(0, Math.floor((n - DEVIATIONS * Math.sqrt(n)) / 2) - 1);
      double low = sorted[outside];
      double high = sorted[n - 1 - outside];
      String verdict = low >= GOAL ? "reached" : high < GOAL ? "missed" : "undecided: too noisy or too few rounds";
      System.out.printf(Locale.ROOT, "%8d %7d %10d %10.4f %9.4f..%.4f   %s%n", running, n, disturbed, median, low,
          high, verdict);
    }
  }
}
