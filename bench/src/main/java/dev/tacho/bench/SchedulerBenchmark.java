package dev.tacho.bench;

import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.PrefixHashAlgorithm;
import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.engine.scheduler.SchedulerConfig;
import dev.tacho.engine.scheduler.SchedulerListener;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepOutputs;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * One step of running decodes through the scheduler, planning and output, with prefix caching: nanoseconds a step.
 * Divide by {@code running} for the cost of a sequence. What a runner does is left out but for the list of tokens.
 *
 * <p>A sequence that ends is replaced by a new one, of some 26 KB for its 4,000 tokens: that, 6 to 7 bytes a step and
 * sequence, is all that is allocated.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class SchedulerBenchmark {
  private static final int PROMPT = 32;
  private static final int OUTPUT = 4000;

  /** Running sequences. */
  @Param({"16", "256", "1024", "4096"})
  int running;

  /** Sequences in the queue. */
  @Param({"0", "100000"})
  int waiting;

  /** Hash of full blocks. */
  @Param({"SHA256", "XXHASH"})
  PrefixHashAlgorithm hash;

  private final StepResult result = new StepResult();
  private final StepOutputs outputs = new StepOutputs();
  private final SamplerState sampler =
      new SamplerState(SamplingParams.greedy().withMaxTokens(OUTPUT), Set.of(), 0);
  private Scheduler scheduler;
  private long nanos;
  private int added;

  /** Starts the running ones, fills the queue. */
  @Setup
  public void setUp() {
    SchedulerConfig config =
        SchedulerConfig.builder()
            .maxNumSeqs(running)
            .maxNumBatchedTokens(running + 8192)
            .maxModelLen(PROMPT + OUTPUT)
            .prefixHashAlgorithm(hash)
            .build();
    int blocks = (running + 1) * ((PROMPT + OUTPUT) / 16 + 1) + 1;
    scheduler = new Scheduler(config, new KvBlockPool(blocks, 16, true), SchedulerListener.NONE);
    for (int i = 0; i < running + waiting; i++) {
      // The first ones end one after the other, so that later steps are alike.
      add(i < running ? 1 + (int) ((long) i * OUTPUT / running) : OUTPUT);
    }
    for (int i = 0; i < 200; i++) {
      step();
    }
  }

  private void add(int maxTokens) {
    int[] prompt = new int[PROMPT];
    for (int t = 0; t < PROMPT; t++) {
      prompt[t] = added * PROMPT + t;
    }
    scheduler.add(Sequence.builder("r" + added++, prompt, sampler).maxTokens(maxTokens).build(), ++nanos);
  }

  /** A step; whoever ends is replaced, from the queue if there is one. */
  @Benchmark
  public int step() {
    StepPlan plan = scheduler.schedule(++nanos);
    result.reset();
    for (int i = 0; i < plan.numSequences(); i++) {
      result.nextSequence();
      if (plan.samples(i)) {
        result.addToken(7, null);
      }
    }
    scheduler.update(plan, result, ++nanos, outputs);
    for (int i = 0; i < outputs.size(); i++) {
      if (outputs.finishReason(i) != null) {
        add(OUTPUT);
      }
    }
    return plan.numTokens();
  }
}
