package dev.tacho.engine.model;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import dev.tacho.engine.kernel.Operation;
import dev.tacho.engine.kv.KvMemory;
import dev.tacho.engine.parallel.WorkerTeam;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Runs models of the Llama family on a team of CPU threads: every member runs the {@link LlamaProgram} over its share,
 * sampling included. Results depend neither on the number of members nor on what else is in a step.
 *
 * <p>Two steps may be in flight; the team computes one after the other, without a pause between them, so they share the
 * activations. The runner owns the team and the scratch; the weights and
 * the KV cache are the caller's, who closes them after the runner. Nothing is allocated in a step once the first ones
 * have passed and no lock is taken. Each member reads the clock once an operator and once behind each barrier.
 */
public final class LlamaRunner implements ModelRunner {
  private static final int MAX_IN_FLIGHT = 2;
  private static final String NATIVE = "native";

  private final Arena arena;
  private final WorkerTeam team;
  private final LlamaProgram program;
  private final Activations activations;
  private final ModelConfig config;
  private final StepHandle[] handles;
  private final boolean nativeKernels;
  // What the team had computed before the first step: the weights.
  private final long earlierNanos;
  private final long[] earlierWaitNanos;
  private volatile OperationCounters @Nullable [] lastCounters;
  private long launched;
  private long awaited;

  /**
   * Takes the scratch for the largest step.
   *
   * @param weights of the model, kept open by the caller until the runner is closed
   * @param cache the KV cache of each layer, the same
   * @param limits the largest step
   * @param team runs the steps; the runner's own once this constructor has returned
   * @throws IllegalArgumentException if the cache does not have the model's layers and heads
   */
  @SuppressWarnings("MustBeClosedChecker") // close() closes it
  public LlamaRunner(Weights weights, KvMemory cache, RunnerLimits limits, WorkerTeam team) {
    this.team = team;
    config = weights.config();
    int numBlocks = checkCache(cache, config);
    arena = Arena.ofShared();
    try {
      activations = Activations.allocate(arena, config, limits, weights.kernels());
      program = new LlamaProgram(weights, cache, activations, team.size());
      handles = new StepHandle[MAX_IN_FLIGHT];
      for (int i = 0; i < handles.length; i++) {
        StepInputs inputs =
            new StepInputs(arena, limits, config.vocabSize(), numBlocks, team.size(), config.attentionShape());
        handles[i] = new StepHandle(inputs, member -> program.run(member, inputs));
      }
      team.launch(member -> program.prepare(member, arena));
      team.await();
      nativeKernels = weights.kernels().id().equals(NATIVE);
      earlierNanos = team.busyNanos();
      earlierWaitNanos = new long[team.size()];
      Arrays.setAll(earlierWaitNanos, team::waitNanos);
    } catch (Throwable failure) {
      arena.close();
      throw failure;
    }
  }

  /**
   * Bytes of scratch that a runner with these limits takes, the KV cache and the weights apart.
   *
   * @param teamSize members of its team
   */
  public static long scratchBytes(ModelConfig config, RunnerLimits limits, Kernels kernels, int teamSize) {
    long worker =
        Math.addExact(
            kernels.attentionScratchBytes(config.attentionShape()) + KernelWorker.MIN_SCRATCH_BYTES,
            Activations.ownRowBytes(config, kernels));
    long workers = Math.multiplyExact(teamSize, worker);
    long inputs = MAX_IN_FLIGHT * StepInputs.bytes(limits, teamSize, config.attentionShape());
    return Math.addExact(Activations.bytes(config, limits, kernels), Math.addExact(workers, inputs));
  }

  private static int checkCache(KvMemory cache, ModelConfig config) {
    KvCacheLayer layer = cache.layer(0);
    if (cache.numLayers() != config.layers()
        || layer.numKvHeads() != config.kvHeads()
        || layer.headDim() != config.headDim()) {
      throw new IllegalArgumentException(
          "KV cache of " + cache.numLayers() + " layers, " + layer.numKvHeads() + " heads of " + layer.headDim()
              + " elements; the model has " + config.layers() + ", " + config.kvHeads() + " and " + config.headDim());
    }
    return layer.numBlocks();
  }

  @Override
  public StepHandle launch(StepPlan plan) {
    if (lastCounters != null) {
      throw new IllegalStateException("the runner is closed");
    }
    if (launched - awaited == MAX_IN_FLIGHT) {
      throw new IllegalStateException(MAX_IN_FLIGHT + " steps are in flight");
    }
    StepHandle handle = handle(launched);
    StepInputs inputs = handle.inputs();
    boolean started = false;
    try {
      inputs.load(plan, launched == awaited ? null : handle(launched - 1).inputs());
      team.launch(handle.task());
      started = true;
    } finally {
      if (!started) {
        inputs.clear();
      }
    }
    launched++;
    return handle;
  }

  private StepHandle handle(long step) {
    return handles[(int) (step % MAX_IN_FLIGHT)];
  }

  @Override
  public StepResult await(StepHandle handle) {
    if (launched == awaited || handle != handle(awaited)) {
      throw new IllegalStateException("the handle is not that of the oldest step in flight");
    }
    StepInputs inputs = handle.inputs();
    awaited++;
    try {
      long gapNanos = team.await();
      inputs.write(handle.result());
      handle.result().setGapNanos(gapNanos);
      return handle.result();
    } finally {
      inputs.clear();
    }
  }

  @Override
  public OperationCounters counters(Operation operation) {
    OperationCounters @Nullable [] last = lastCounters;
    if (last == null) {
      try {
        return sum(operation);
      } catch (IllegalStateException closedMeanwhile) {
        last = lastCounters;
        if (last == null) {
          throw closedMeanwhile;
        }
      }
    }
    return last[operation.ordinal()];
  }

  private OperationCounters sum(Operation operation) {
    long calls = 0;
    long flops = 0;
    long readBytes = 0;
    long writeBytes = 0;
    long nanos = 0;
    for (int i = 0; i < team.size(); i++) {
      MemorySegment line = program.member(i).worker().line(operation);
      calls += line.get(JAVA_LONG, KernelWorker.CALLS_OFFSET);
      flops += line.get(JAVA_LONG, KernelWorker.FLOPS_OFFSET);
      readBytes += line.get(JAVA_LONG, KernelWorker.READ_BYTES_OFFSET);
      writeBytes += line.get(JAVA_LONG, KernelWorker.WRITE_BYTES_OFFSET);
      nanos += line.get(JAVA_LONG, KernelWorker.NANOS_OFFSET);
    }
    return new OperationCounters(calls, flops, readBytes, writeBytes, nanos);
  }

  @Override
  public long ffiCalls() {
    long calls = 0;
    if (nativeKernels) {
      for (Operation operation : Operation.values()) {
        calls += counters(operation).calls();
      }
    }
    return calls;
  }

  @Override
  public long busyNanos() {
    return team.busyNanos() - earlierNanos;
  }

  @Override
  public int workers() {
    return team.size();
  }

  @Override
  public long waitNanos(int worker) {
    return Math.max(0, team.waitNanos(worker) - earlierWaitNanos[worker]);
  }

  /** Logits of a sampled row of the step awaited last, in the order of the plan; valid until the next launch. */
  float[] logits(int sampledRow) {
    int vocabulary = config.vocabSize();
    float[] row = new float[vocabulary];
    long first = (long) sampledRow * vocabulary * Float.BYTES;
    MemorySegment.copy(activations.logits(), JAVA_FLOAT, first, row, 0, vocabulary);
    return row;
  }

  @Override
  public void close() {
    if (lastCounters != null) {
      return;
    }
    team.close();
    Operation[] operations = Operation.values();
    OperationCounters[] last = new OperationCounters[operations.length];
    for (Operation operation : operations) {
      last[operation.ordinal()] = sum(operation);
    }
    lastCounters = last;
    arena.close();
  }
}
