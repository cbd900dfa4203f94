package dev.tacho.engine.model;

import dev.tacho.engine.kernel.AttentionShape;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import dev.tacho.engine.kv.KvMemory;
import dev.tacho.engine.parallel.TeamMember;
import dev.tacho.engine.parallel.TeamTask;
import dev.tacho.engine.sampling.Sampler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The step of a Llama model as a program that every member of the team runs over its own share of each operator. Two
 * operators have a barrier between them unless the second reads only what the same member wrote in the first. Rows
 * (tokens) are split for what works on whole rows, columns for matmuls and what is done element by element, so that a
 * single token keeps all members busy; no split changes a result.
 *
 * <pre>
 *   rows     embed, rope angles
 *   layer:
 *     rows     norm                              | barrier
 *     columns  query, key, value                 | barrier
 *     heads    rope, write to the KV cache       | barrier
 *     items    attention                         | barrier
 *     columns  output projection, add to hidden  | barrier
 *     rows     norm                              | barrier
 *     columns  gate, up, silu(gate) * up         | barrier
 *     columns  down projection, add to hidden    | barrier
 *   sampled rows  gather, norm                   | barrier
 *   columns       logits                         | barrier
 *   sampled rows  sample
 * </pre>
 *
 * The engine thread sets the inputs before a launch; the members allocate nothing after their first step.
 */
final class LlamaProgram implements TeamTask {
  private final ModelConfig config;
  private final Weights weights;
  private final Kernels kernels;
  private final KvMemory cache;
  private final Activations activations;
  private final AttentionShape attentionShape;
  private final RopeFrequencies rope;
  private final MemberState[] members;
  private final int embedding;
  private final int feedForward;
  private final int queryLength;
  private final int keyValueLength;
  private StepInputs inputs;

  /**
   * @param weights of the model
   * @param cache the KV cache of each layer
   * @param activations sized for the largest step
   * @param teamSize members that will run the program
   * @param inputs of the first step, empty yet
   */
  LlamaProgram(Weights weights, KvMemory cache, Activations activations, int teamSize, StepInputs inputs) {
    this.config = weights.config();
    this.weights = weights;
    this.kernels = weights.kernels();
    this.cache = cache;
    this.activations = activations;
    this.inputs = inputs;
    attentionShape = config.attentionShape();
    rope = new RopeFrequencies(config.rope(), weights.ropeFactors());
    members = new MemberState[teamSize];
    embedding = config.embeddingLength();
    feedForward = config.feedForwardLength();
    queryLength = config.queryLength();
    keyValueLength = config.keyValueLength();
  }

  /** Run once by each member before the first step. */
  void prepare(TeamMember member, Arena arena) {
    members[member.index()] = new MemberState(arena, member, config, kernels, activations);
  }

  /** State of a member that has prepared. */
  MemberState member(int index) {
    return members[index];
  }

  /** Says which step runs next; engine thread, between steps. */
  void setInputs(StepInputs next) {
    inputs = next;
  }

  @Override
  public void run(TeamMember member) {
    MemberState state = members[member.index()];
    StepInputs step = inputs;
    embed(member, state, step);
    for (int i = 0; i < config.layers(); i++) {
      LayerWeights layer = weights.layer(i);
      attend(member, state, step, layer, cache.layer(i));
      feedForward(member, state, step, layer);
    }
    if (step.numSampled() > 0) {
      sample(member, state, step);
    }
  }

  private void embed(TeamMember member, MemberState state, StepInputs step) {
    int tokens = step.numTokens();
    int begin = member.begin(tokens);
    int end = member.end(tokens);
    if (begin < end) {
      kernels.embeddingLookup(
          weights.tokenEmbedding(),
          step.tokenIds(),
          tokens,
          activations.hidden(),
          embedding,
          begin,
          end,
          state.worker());
    }
    for (int row = begin; row < end; row++) {
      rope.write(step.position(row), activations.cosSin(), row);
    }
  }

  private void attend(
      TeamMember member, MemberState state, StepInputs step, LayerWeights layer, KvCacheLayer layerCache) {
    int tokens = step.numTokens();
    norm(member, state, activations.hidden(), layer.attentionNorm(), tokens, activations.normed());
    member.barrier();
    project(state, layer.query(), tokens, activations.query(), state.queryGroups());
    project(state, layer.key(), tokens, activations.key(), state.keyGroups());
    project(state, layer.value(), tokens, activations.value(), state.valueGroups());
    member.barrier();
    cacheKeysAndValues(state, step, layerCache);
    member.barrier();
    int items = step.batch().numItems();
    int begin = member.begin(items);
    int end = member.end(items);
    if (begin < end) {
      kernels.attention(
          attentionShape,
          layerCache,
          step.batch(),
          activations.query(),
          queryLength,
          activations.attended(),
          queryLength,
          begin,
          end,
          state.worker());
    }
    member.barrier();
    addProjection(state, layer.attentionOutput(), activations.attended(), queryLength, tokens);
    member.barrier();
  }

  /** Rope and the cache write of a head are one member's, so nothing has to be waited for between them. */
  private void cacheKeysAndValues(MemberState state, StepInputs step, KvCacheLayer layerCache) {
    MemberState.Range heads = state.kvHeads();
    if (heads.isEmpty()) {
      return;
    }
    int tokens = step.numTokens();
    int queryHeads = heads.size() * (config.heads() / config.kvHeads());
    rotate(state, state.queryHeads(), queryHeads, queryLength, tokens);
    rotate(state, state.keyHeads(), heads.size(), keyValueLength, tokens);
    kernels.kvWrite(
        layerCache,
        step.slots(),
        tokens,
        activations.key(),
        keyValueLength,
        activations.value(),
        keyValueLength,
        heads.begin(),
        heads.end(),
        state.worker());
  }

  private void rotate(MemberState state, MemorySegment rows, int heads, int rowLength, int tokens) {
    kernels.rope(
        config.rope().pairing(),
        config.rope().dimensions(),
        activations.cosSin(),
        tokens,
        heads,
        config.headDim(),
        rows,
        rowLength,
        0,
        tokens,
        state.worker());
  }

  private void feedForward(TeamMember member, MemberState state, StepInputs step, LayerWeights layer) {
    int tokens = step.numTokens();
    norm(member, state, activations.hidden(), layer.feedForwardNorm(), tokens, activations.normed());
    member.barrier();
    MemberState.Range groups = state.feedForwardGroups();
    project(state, layer.gate(), tokens, activations.gate(), groups);
    project(state, layer.up(), tokens, activations.up(), groups);
    if (!groups.isEmpty()) {
      kernels.siluMul(
          state.gateColumns(),
          feedForward,
          state.upColumns(),
          feedForward,
          tokens,
          groups.columns(feedForward),
          state.gateColumns(),
          feedForward,
          0,
          tokens,
          state.worker());
    }
    member.barrier();
    addProjection(state, layer.down(), activations.gate(), feedForward, tokens);
    member.barrier();
  }

  private void sample(TeamMember member, MemberState state, StepInputs step) {
    int rows = step.numSampled();
    int begin = member.begin(rows);
    int end = member.end(rows);
    long rowBytes = (long) embedding * Float.BYTES;
    for (int row = begin; row < end; row++) {
      long from = step.sampledRow(row) * rowBytes;
      MemorySegment.copy(activations.hidden(), from, activations.last(), row * rowBytes, rowBytes);
    }
    norm(member, state, activations.last(), weights.outputNorm(), rows, activations.last());
    member.barrier();
    Projection output = weights.output();
    project(state, output, activations.last(), embedding, rows, activations.logits(), state.vocabularyGroups());
    member.barrier();
    Sampler sampler = state.sampler();
    for (int row = begin; row < end; row++) {
      long first = (long) row * config.vocabSize();
      int id = sampler.sample(activations.logits(), first, step.sampler(row), step.outputTokens(row));
      step.sampled(row, id, sampler.logprobs(), sampler.sawNan());
    }
  }

  /** The member's rows of y = norm(x). */
  private void norm(
      TeamMember member, MemberState state, MemorySegment x, MemorySegment weight, int rows, MemorySegment y) {
    int begin = member.begin(rows);
    int end = member.end(rows);
    if (begin < end) {
      kernels.rmsNorm(
          x, embedding, weight, config.rmsEpsilon(), rows, embedding, y, embedding, begin, end, state.worker());
    }
  }

  /** Some groups of columns of y = projection(normed). */
  private void project(
      MemberState state, Projection projection, int tokens, MemorySegment y, MemberState.Range groups) {
    project(state, projection, activations.normed(), embedding, tokens, y, groups);
  }

  private void project(
      MemberState state,
      Projection projection,
      MemorySegment x,
      int ldx,
      int rows,
      MemorySegment y,
      MemberState.Range groups) {
    if (!groups.isEmpty()) {
      kernels.matmul(
          projection.weight(),
          projection.bias(),
          x,
          ldx,
          rows,
          y,
          projection.weight().n(),
          groups.begin(),
          groups.end(),
          state.worker());
    }
  }

  /** The member's columns of hidden += projection(x); what is added passes through {@code normed}. */
  private void addProjection(MemberState state, Projection projection, MemorySegment x, int ldx, int tokens) {
    MemberState.Range groups = state.embeddingGroups();
    if (groups.isEmpty()) {
      return;
    }
    project(state, projection, x, ldx, tokens, activations.normed(), groups);
    kernels.add(
        state.hiddenColumns(),
        embedding,
        state.normedColumns(),
        embedding,
        tokens,
        groups.columns(embedding),
        state.hiddenColumns(),
        embedding,
        0,
        tokens,
        state.worker());
  }
}
