package dev.tacho.engine.model;

import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvLayout;
import dev.tacho.engine.kv.KvMemory;
import dev.tacho.engine.parallel.WorkerTeam;
import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.engine.scheduler.SchedulerConfig;
import dev.tacho.engine.scheduler.SchedulerListener;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepOutputs;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import dev.tacho.metrics.event.FinishReason;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A model with its runner, KV cache and a real scheduler, driven step by step by a test on one thread; keeps the
 * logits behind every sampled token.
 */
final class ModelRig implements AutoCloseable {
  /**
   * How the rig is built.
   *
   * @param kvType elements of the KV cache
   * @param threads members of the team
   * @param maxTokens tokens of a step
   * @param maxSequences sequences of a step
   * @param maxContext tokens of a sequence
   * @param async a step is planned before the output of the one before is known
   * @param drafts of a sequence in a step
   */
  record Shape(DType kvType, int threads, int maxTokens, int maxSequences, int maxContext, boolean async, int drafts) {
    static Shape f32(int threads) {
      return new Shape(DType.F32, threads, 512, 16, 512, false, 0);
    }

    Shape withMaxTokens(int tokens) {
      return new Shape(kvType, threads, tokens, maxSequences, maxContext, async, drafts);
    }

    Shape withMaxSequences(int sequences) {
      return new Shape(kvType, threads, maxTokens, sequences, maxContext, async, drafts);
    }

    Shape withKvType(DType dtype) {
      return new Shape(dtype, threads, maxTokens, maxSequences, maxContext, async, drafts);
    }

    Shape withMaxContext(int tokens) {
      return new Shape(kvType, threads, maxTokens, maxSequences, tokens, async, drafts);
    }

    Shape withDrafts(int count) {
      return new Shape(kvType, threads, maxTokens, maxSequences, maxContext, async, count);
    }

    Shape asynchronous() {
      return new Shape(kvType, threads, maxTokens, maxSequences, maxContext, true, drafts);
    }
  }

  private final Weights weights;
  private final KvMemory memory;
  private final LlamaRunner runner;
  private final Scheduler scheduler;
  private final StepOutputs outputs = new StepOutputs();
  private final Map<String, List<float[]>> logits = new LinkedHashMap<>();
  private long nanos;

  ModelRig(Path model, Kernels kernels, Shape shape) {
    this(model, kernels, shape, null);
  }

  ModelRig(Path model, Kernels kernels, Shape shape, @Nullable RepackCache cache) {
    WorkerTeam team = new WorkerTeam("rig", shape.threads());
    try (GgufFile file = GgufFile.open(model)) {
      ModelConfig read = ModelConfig.of(file);
      weights =
          cache == null
              ? Weights.load(file, read, kernels, team, (loaded, total, source) -> {})
              : Weights.load(file, read, kernels, team, (loaded, total, source) -> {}, cache);
    }
    ModelConfig config = weights.config();
    int context = Math.min(shape.maxContext(), config.contextLength());
    KvLayout layout = new KvLayout(config.layers(), config.kvHeads(), config.headDim(), shape.kvType());
    int blocks = 1 + shape.maxSequences() * KvLayout.blocksForTokens(context);
    memory = new KvMemory(layout, blocks, kernels);
    RunnerLimits limits = new RunnerLimits(shape.maxTokens(), shape.maxSequences(), context, shape.drafts());
    runner = new LlamaRunner(weights, memory, limits, team);
    scheduler =
        new Scheduler(
            SchedulerConfig.builder()
                .maxNumBatchedTokens(shape.maxTokens())
                .maxNumSeqs(shape.maxSequences())
                .maxModelLen(context)
                .asyncScheduling(shape.async())
                .numSpeculativeTokens(shape.drafts())
                .build(),
            new KvBlockPool(blocks, KvCacheLayer.BLOCK_TOKENS, false),
            SchedulerListener.NONE);
  }

  LlamaRunner runner() {
    return runner;
  }

  Weights weights() {
    return weights;
  }

  ModelConfig config() {
    return weights.config();
  }

  /** Queues a greedy sequence that ignores end-of-text. */
  Sequence add(String id, int[] prompt, int tokens) {
    return add(id, prompt, SamplingParams.greedy().withMaxTokens(tokens).withIgnoreEos(true));
  }

  /** Queues a sequence. */
  Sequence add(String id, int[] prompt, SamplingParams params) {
    SamplerState state = new SamplerState(params, Set.of(), params.seed().orElse(0));
    Sequence sequence = Sequence.builder(id, prompt, state).build();
    scheduler.add(sequence, ++nanos);
    return sequence;
  }

  /** The next step's plan. */
  StepPlan schedule() {
    return scheduler.schedule(++nanos);
  }

  /** Takes a result in. */
  void update(StepPlan plan, StepResult result) {
    scheduler.update(plan, result, ++nanos, outputs);
  }

  /** Gives a sequence drafts for its next step. */
  void setDrafts(Sequence sequence, int[] ids) {
    scheduler.setDrafts(sequence, ids, ids.length);
  }

  /** Ends a sequence. */
  void abort(Sequence sequence) {
    scheduler.abort(sequence, FinishReason.ABORT, ++nanos);
  }

  /** Ends the sequences of a step that failed. */
  void fail(StepPlan plan) {
    scheduler.fail(plan, ++nanos, outputs);
  }

  /** Runs one step. */
  void step() {
    StepPlan plan = schedule();
    StepResult result = runner.await(runner.launch(plan));
    int row = 0;
    for (int i = 0; i < plan.numSequences(); i++) {
      if (plan.samples(i)) {
        logits.computeIfAbsent(plan.sequence(i).requestId(), id -> new ArrayList<>()).add(runner.logits(row++));
      }
    }
    update(plan, result);
  }

  /** Runs steps until nothing is left to do. */
  void finish() {
    while (scheduler.hasUnfinished()) {
      step();
    }
  }

  /** Runs one greedy sequence alone. */
  int[] generate(int[] prompt, int tokens) {
    logits.clear();
    Sequence sequence = add("only", prompt, tokens);
    finish();
    return output(sequence);
  }

  /** The logits of each sampled token of a sequence, in order. */
  List<float[]> logits(String id) {
    return logits.getOrDefault(id, List.of());
  }

  static int[] output(Sequence sequence) {
    int[] ids = new int[sequence.length() - sequence.promptLength()];
    for (int i = 0; i < ids.length; i++) {
      ids[i] = sequence.token(sequence.promptLength() + i);
    }
    return ids;
  }

  @Override
  public void close() {
    runner.close();
    memory.close();
    weights.close();
  }
}
