package dev.tacho.bench;

import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import dev.tacho.engine.GenerationHandle;
import dev.tacho.engine.GenerationRequest;
import dev.tacho.engine.SamplingParams;
import dev.tacho.metrics.perf.DevicePeaks;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * What statistics cost: tokens a second of an engine that records them over those of one that does not, in pairs of
 * runs of a second each that take turns, so that what else the machine does meets both. About a minute.
 *
 * <p>The only argument is the model's file.
 */
public final class StatsCost {
  private static final int[] RUNNING = {1, 64};
  private static final int PAIRS = 11;
  private static final int TOKENS = 64;
  private static final int CONTEXT = 128;
  private static final long RUN_NANOS = 1_000_000_000;
  private static final double NANOS = 1e9;

  /** Of each engine: half of the CPUs, as they would not be divided evenly between engines opened one by one. */
  private static final int THREADS = Math.max(1, Runtime.getRuntime().availableProcessors() / 2);

  /** Given, so that nothing is measured beside the runs. */
  private static final DevicePeaks PEAKS = new DevicePeaks(1e12, 1e11);

  private StatsCost() {}

  /** Measures and prints a line for each number of running requests. */
  public static void main(String[] arguments) {
    if (arguments.length != 1) {
      throw new IllegalArgumentException("expected the model's file, found " + Arrays.toString(arguments));
    }
    Path model = Path.of(arguments[0]);
    try (Engine on = open(model, false);
        Engine off = open(model, true)) {
      System.out.printf(Locale.ROOT, "%8s %14s %14s %10s %18s%n", "running", "tokens/s on", "off", "on / off", "range");
      for (int running : RUNNING) {
        compare(on, off, running);
      }
    }
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

  private static void compare(Engine on, Engine off, int running) {
    double _ = tokensPerSecond(on, running);
    double _ = tokensPerSecond(off, running);
    double[] with = new double[PAIRS];
    double[] without = new double[PAIRS];
    double[] ratios = new double[PAIRS];
    for (int pair = 0; pair < PAIRS; pair++) {
      // Who goes first has the machine in another state, so they take turns at that too.
      if (pair % 2 == 0) {
        with[pair] = tokensPerSecond(on, running);
        without[pair] = tokensPerSecond(off, running);
      } else {
        without[pair] = tokensPerSecond(off, running);
        with[pair] = tokensPerSecond(on, running);
      }
      ratios[pair] = with[pair] / without[pair];
    }
    Arrays.sort(with);
    Arrays.sort(without);
    Arrays.sort(ratios);
    System.out.printf(
        Locale.ROOT,
        "%8d %14.1f %14.1f %10.4f %9.4f..%.4f%n",
        running,
        with[PAIRS / 2],
        without[PAIRS / 2],
        ratios[PAIRS / 2],
        ratios[0],
        ratios[PAIRS - 1]);
  }

  private static double tokensPerSecond(Engine engine, int running) {
    SamplingParams sampling = SamplingParams.builder().temperature(0).maxTokens(TOKENS).ignoreEos(true).build();
    long tokens = 0;
    long start = System.nanoTime();
    long elapsed;
    do {
      List<GenerationHandle> handles = new ArrayList<>();
      for (int i = 0; i < running; i++) {
        int[] prompt = {1, 5 + i, 7, 9};
        handles.add(engine.submit(GenerationRequest.builder().prompt(prompt).sampling(sampling).build()));
      }
      for (GenerationHandle handle : handles) {
        tokens += handle.completion().join().usage().generatedTokens();
      }
      elapsed = System.nanoTime() - start;
    } while (elapsed < RUN_NANOS);
    return tokens * NANOS / elapsed;
  }
}
