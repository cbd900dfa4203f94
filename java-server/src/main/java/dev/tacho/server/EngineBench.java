package dev.tacho.server;

import dev.tacho.engine.Completion;
import dev.tacho.engine.Engine;
import dev.tacho.engine.GenerationHandle;
import dev.tacho.engine.GenerationRequest;
import dev.tacho.engine.OperatorWork;
import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.TokenDelta;
import dev.tacho.metrics.perf.DevicePeaks;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Runs the tests of {@code tacho bench} through an engine, as a caller would. Before each it runs for some seconds
 * without counting: a service is measured when the JIT compiler has done its work.
 */
final class EngineBench {
  /** Any would do: weights do not care which tokens they meet. */
  private static final long PROMPT_SEED = 20_260_101;

  private static final String PREFILL = "prefill";

  private final Engine engine;
  private final long warmingNanos;
  private final int repeat;
  private final Consumer<String> progress;
  private final Random random = new Random(PROMPT_SEED);

  /**
   * @param engine idle, of nobody else's use
   * @param warmingSeconds for which each test is run before it counts
   * @param repeat runs of each test
   * @param progress gets a line before each run
   */
  EngineBench(Engine engine, int warmingSeconds, int repeat, Consumer<String> progress) {
    this.engine = engine;
    warmingNanos = TimeUnit.SECONDS.toNanos(warmingSeconds);
    this.repeat = repeat;
    this.progress = progress;
  }

  /** From handing a prompt of so many tokens over to its first token. */
  BenchResult prefill(int tokens) {
    return measure(PREFILL, 1, () -> tokens / seconds(run(tokens, 1, 1).timings().timeToFirstToken()));
  }

  /** The operators of {@link #prefill}, in a run of its own, right behind a measurement of the machine's peaks. */
  Roofline prefillRoofline(int tokens) {
    DevicePeaks peaks = peaks();
    progress.accept(PREFILL + ": operators");
    List<OperatorWork> before = engine.operatorWork();
    long begin = System.nanoTime();
    run(tokens, 1, 1);
    return roofline(PREFILL, 1, System.nanoTime() - begin, peaks, before);
  }

  /**
   * From the first token to the last of sequences that run side by side.
   *
   * @param sequences how many
   * @param depth tokens of the prompt that they share without sharing the cache
   * @param tokens decoded by each after its first
   */
  BenchResult decode(int sequences, int depth, int tokens) {
    return measure(
        decodeName(sequences),
        sequences,
        () -> (double) sequences * tokens / seconds(run(depth, sequences, tokens + 1).timings().decode()));
  }

  /**
   * The operators of {@link #decode}, in a run of its own, from the first token on, right behind a measurement of the
   * machine's peaks: reading the tokens as they come would make the others slower.
   */
  Roofline decodeRoofline(int sequences, int depth, int tokens) {
    DevicePeaks peaks = peaks();
    progress.accept(decodeName(sequences) + " of " + sequences + ": operators");
    GenerationHandle handle = submit(depth, sequences, tokens + 1);
    Iterator<TokenDelta> deltas = handle.deltas().iterator();
    deltas.next();
    List<OperatorWork> before = engine.operatorWork();
    long begin = System.nanoTime();
    while (deltas.hasNext()) {
      deltas.next();
    }
    Futures.join(handle.completion());
    return roofline(decodeName(sequences), sequences, System.nanoTime() - begin, peaks, before);
  }

  private Roofline roofline(
      String test, int batch, long elapsedNanos, @Nullable DevicePeaks peaks, List<OperatorWork> before) {
    return Roofline.between(
        test, batch, engine.info().threads(), elapsedNanos, peaks, before, engine.operatorWork());
  }

  private @Nullable DevicePeaks peaks() {
    progress.accept("peaks of this machine");
    return engine.measurePeaks().orElse(null);
  }

  private static String decodeName(int sequences) {
    return sequences == 1 ? "decode" : "batched_decode";
  }

  private Completion run(int promptTokens, int sequences, int maxTokens) {
    return Futures.join(submit(promptTokens, sequences, maxTokens).completion());
  }

  private GenerationHandle submit(int promptTokens, int sequences, int maxTokens) {
    int[] prompt = random.ints(promptTokens, 0, engine.info().vocabSize()).toArray();
    SamplingParams sampling =
        SamplingParams.builder().temperature(0).n(sequences).maxTokens(maxTokens).ignoreEos(true).build();
    return engine.submit(GenerationRequest.builder().prompt(prompt).sampling(sampling).build());
  }

  /** A run of a test: tokens a second. */
  private interface Test {
    double run();
  }

  private BenchResult measure(String name, int batch, Test test) {
    progress.accept(name + " of " + batch + ": warming up");
    long end = System.nanoTime() + warmingNanos;
    do {
      double _ = test.run();
    } while (System.nanoTime() - end < 0);
    double[] runs = new double[repeat];
    for (int i = 0; i < repeat; i++) {
      progress.accept(name + " of " + batch + ": run " + (i + 1) + " of " + repeat);
      runs[i] = test.run();
    }
    return BenchResult.of(name, batch, runs);
  }

  private static double seconds(Duration time) {
    return time.toNanos() / 1e9;
  }
}
