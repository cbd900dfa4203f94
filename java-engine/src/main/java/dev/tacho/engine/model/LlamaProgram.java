package dev.tacho.engine.model;

import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.AttentionShape;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import dev.tacho.engine.kernel.Operation;
import dev.tacho.engine.kv.KvMemory;
import dev.tacho.engine.parallel.TeamMember;
import dev.tacho.engine.parallel.WorkShare;
import dev.tacho.engine.sampling.RowMaxima;
import dev.tacho.engine.sampling.Sampler;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Comparator;
import java.util.stream.Stream;

/**
 * The step of a Llama model as a program that every member of the team runs over its own share of each operator. Two
 * operators have a barrier between them unless the second reads only what the same member wrote in the first. Rows
 * (tokens) are split for what works on whole rows, columns for matmuls and what is done element by element, so that a
 * single token keeps all members busy, in pieces if they wait for memory; no split changes a result. Packed: in the
 * form that the next matmuls read, once for all of them.
 *
 * <p>What concerns whole rows every member does for itself if there is a single one, since all would wait for the one
 * that does it: into a row of its own, or, in the residual stream, the same bytes. Where kv heads can be shared evenly,
 * a member attends with those that it has written, and packs what they give.
 *
 * <pre>
 *   rows     take sampled tokens, embed, rope angles
 *   layer:
 *     rows     norm, packed                      | barrier, unless a single row
 *     columns  query, key, value                 | barrier
 *     heads    rope, write to the KV cache       | barrier, unless heads are shared evenly
 *     items    attention                         | likewise, and what a member's heads give is whole blocks
 *     columns  pack, unless read as floats       | barrier
 *     columns  output projection into hidden     | barrier
 *     rows     norm, packed                      | barrier, unless a single row
 *     columns  gate, up, silu(gate) * up, packed | barrier
 *     columns  down projection into hidden       | barrier
 *   sampled rows  gather, norm, packed           | barrier, unless a single row
 *   columns       logits, their largest          | barrier
 *   sequences     sample
 * </pre>
 *
 * The engine thread fills the inputs before a launch, but for the tokens that the step before is about to sample; the
 * members take those when they begin. They allocate nothing after their first step.
 */
final class LlamaProgram {
  /** Beyond so many rows matmuls compute more than they wait for memory, and unpack for many groups at a time. */
  private static final int MAX_ROWS_IN_SMALL_PIECES = 32;

  /** Groups of columns of a piece of a matmul of more rows than that. */
  private static final int GROUPS_OF_MANY_ROWS = 16;

  private static final int GROUPS_OF_A_BLOCK = Kernels.ACTIVATION_BLOCK / Kernels.ROW_GROUP;

  private final ModelConfig config;
  private final Weights weights;
  private final Kernels kernels;
  private final KvMemory cache;
  private final Activations activations;
  private final AttentionShape attentionShape;
  private final RopeFrequencies rope;
  private final MemberState[] members;
  private final ActivationFormat[][] attentionFormats;
  private final ActivationFormat[][] feedForwardFormats;
  private final ActivationFormat[] outputFormats;
  private final int embedding;
  private final int feedForward;
  private final int queryLength;
  private final int keyValueLength;
  private final int embeddingGroups;
  private final int feedForwardGroups;
  private final int queryGroups;
  private final int keyValueGroups;
  private final int vocabularyGroups;
  private final boolean sharesQueryBlocks;

  /**
   * @param weights of the model
   * @param cache the KV cache of each layer
   * @param activations sized for the largest step
   * @param teamSize members that will run the program
   */
  LlamaProgram(Weights weights, KvMemory cache, Activations activations, int teamSize) {
    this.config = weights.config();
    this.weights = weights;
    this.kernels = weights.kernels();
    this.cache = cache;
    this.activations = activations;
    attentionShape = config.attentionShape();
    rope = new RopeFrequencies(config.rope(), weights.ropeFactors());
    members = new MemberState[teamSize];
    embedding = config.embeddingLength();
    feedForward = config.feedForwardLength();
    queryLength = config.queryLength();
    keyValueLength = config.keyValueLength();
    embeddingGroups = MemberState.groups(embedding);
    feedForwardGroups = MemberState.groups(feedForward);
    queryGroups = MemberState.groups(queryLength);
    keyValueGroups = MemberState.groups(keyValueLength);
    vocabularyGroups = MemberState.groups(config.vocabSize());
    sharesQueryBlocks = queryLength % (teamSize * Kernels.ACTIVATION_BLOCK) == 0;
    attentionFormats = new ActivationFormat[config.layers()][];
    feedForwardFormats = new ActivationFormat[config.layers()][];
    for (int i = 0; i < config.layers(); i++) {
      LayerWeights layer = weights.layer(i);
      attentionFormats[i] = formats(layer.query(), layer.key(), layer.value());
      feedForwardFormats[i] = formats(layer.gate(), layer.up());
    }
    outputFormats = formats(weights.output());
  }

  private ActivationFormat format(Projection projection) {
    return kernels.activationFormat(projection.weight().dtype());
  }

  /**
   * The forms in which projections read their common input; one, unless types are mixed. Floats are the last: they may
   * take the place of what the other forms are made from.
   */
  private ActivationFormat[] formats(Projection... projections) {
    return Stream.of(projections)
        .map(this::format)
        .distinct()
        .sorted(Comparator.reverseOrder())
        .toArray(ActivationFormat[]::new);
  }

  /** Run once by each member before the first step. */
  void prepare(TeamMember member, Arena arena) {
    members[member.index()] = new MemberState(arena, member, config, kernels, activations);
  }

  /** State of a member that has prepared. */
  MemberState member(int index) {
    return members[index];
  }

  /** A member's part of a step; the members must have ended the step before. */
  void run(TeamMember member, StepInputs step) {
    if (step.numTokens() == 0) {
      return;
    }
    MemberState state = members[member.index()];
    state.worker().beginNanos();
    embed(member, state, step);
    for (int i = 0; i < config.layers(); i++) {
      LayerWeights layer = weights.layer(i);
      attend(member, state, step, layer, attentionFormats[i], cache.layer(i));
      feedForward(member, state, step, layer, feedForwardFormats[i]);
    }
    if (step.numSampled() > 0) {
      sample(member, state, step);
    }
  }

  /** Waits for the other members; the wait is no operation's time. */
  private static void meet(TeamMember member, MemberState state) {
    member.barrier();
    state.worker().beginNanos();
  }

  private void embed(TeamMember member, MemberState state, StepInputs step) {
    int tokens = step.numTokens();
    int begin = rowsBegin(member, tokens);
    int end = rowsEnd(member, tokens);
    step.fillIn(begin, end);
    if (begin < end) {
      KernelWorker worker = rowsWorker(state, tokens);
      kernels.embeddingLookup(
          weights.tokenEmbedding(),
          step.tokenIds(),
          tokens,
          activations.hidden(),
          embedding,
          begin,
          end,
          worker);
      worker.endNanos(Operation.EMBEDDING_LOOKUP);
    }
    for (int row = begin; row < end; row++) {
      rope.write(step.position(row), activations.cosSin(), row);
    }
  }

  private void attend(
      TeamMember member,
      MemberState state,
      StepInputs step,
      LayerWeights layer,
      ActivationFormat[] formats,
      KvCacheLayer layerCache) {
    int tokens = step.numTokens();
    MatmulInput normed = rowsInput(state, tokens, activations.normed());
    norm(member, state, activations.hidden(), layer.attentionNorm(), tokens, normed, formats);
    int keys = queryGroups + keyValueGroups;
    WorkShare share = state.share();
    share.begin(keys + keyValueGroups, leastGroups(tokens));
    while (share.next()) {
      project(state, layer.query(), normed, tokens, activations.query(), share, 0, queryGroups);
      project(state, layer.key(), normed, tokens, activations.key(), share, queryGroups, keyValueGroups);
      project(state, layer.value(), normed, tokens, activations.value(), share, keys, keyValueGroups);
    }
    meet(member, state);
    cacheKeysAndValues(state, step, layerCache);
    boolean ownHeads = step.batch().sharesHeads();
    if (!ownHeads) {
      meet(member, state);
    }
    int begin = step.batch().begin(member.index());
    int end = step.batch().end(member.index());
    if (begin < end) {
      kernels.attention(
          attentionShape,
          layerCache,
          step.batch(),
          activations.query(),
          queryLength,
          activations.attended().floats(),
          queryLength,
          begin,
          end,
          state.worker());
      state.worker().endNanos(Operation.ATTENTION);
    }
    ActivationFormat format = format(layer.attentionOutput());
    if (format != ActivationFormat.FLOAT32) {
      if (!(ownHeads && sharesQueryBlocks)) {
        meet(member, state);
      }
      pack(state, activations.attended(), format, tokens, state.attendedBlocks());
    }
    meet(member, state);
    addProjection(state, layer.attentionOutput(), activations.attended(), tokens);
    meet(member, state);
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
    state.worker().endNanos(Operation.KV_WRITE);
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
    state.worker().endNanos(Operation.ROPE);
  }

  private void feedForward(
      TeamMember member, MemberState state, StepInputs step, LayerWeights layer, ActivationFormat[] formats) {
    int tokens = step.numTokens();
    MatmulInput normed = rowsInput(state, tokens, activations.normed());
    norm(member, state, activations.hidden(), layer.feedForwardNorm(), tokens, normed, formats);
    ActivationFormat format = format(layer.down());
    WorkShare share = state.share();
    share.begin(MemberState.blocks(feedForward), Math.max(1, leastGroups(tokens) / GROUPS_OF_A_BLOCK));
    while (share.next()) {
      // Whole blocks of packed activations, so that who has computed them can pack them.
      int begin = Math.min(share.first() * GROUPS_OF_A_BLOCK, feedForwardGroups);
      int end = Math.min(share.end() * GROUPS_OF_A_BLOCK, feedForwardGroups);
      multiply(state, layer.gate(), normed, tokens, activations.gate().floats(), false, begin, end);
      multiply(state, layer.up(), normed, tokens, activations.up(), false, begin, end);
      kernels.siluMul(
          activations.gate().floats(),
          feedForward,
          activations.up(),
          feedForward,
          tokens,
          activations.gate().as(format),
          share.first(),
          share.end(),
          state.worker());
      state.worker().endNanos(Operation.SILU_MUL);
    }
    meet(member, state);
    addProjection(state, layer.down(), activations.gate(), tokens);
    meet(member, state);
  }

  private void sample(TeamMember member, MemberState state, StepInputs step) {
    int rows = step.numSampled();
    int begin = rowsBegin(member, rows);
    int end = rowsEnd(member, rows);
    MatmulInput last = rowsInput(state, rows, activations.last());
    long rowBytes = (long) embedding * Float.BYTES;
    for (int row = begin; row < end; row++) {
      long from = step.sampledRow(row) * rowBytes;
      MemorySegment.copy(activations.hidden(), from, last.floats(), row * rowBytes, rowBytes);
    }
    norm(member, state, last.floats(), weights.outputNorm(), rows, last, outputFormats);
    RowMaxima maxima = state.maxima();
    for (int row = 0; row < rows; row++) {
      maxima.clear(row);
    }
    WorkShare share = state.share();
    share.begin(vocabularyGroups, leastGroups(rows));
    while (share.next()) {
      multiply(state, weights.output(), last, rows, activations.logits(), false, share.first(), share.end());
      foldMaxima(maxima, step, share);
      state.worker().beginNanos();
    }
    meet(member, state);
    Sampler sampler = state.sampler();
    int lastSequence = member.end(step.numSampling());
    for (int i = member.begin(step.numSampling()); i < lastSequence; i++) {
      int row = step.firstRow(i) - 1;
      do {
        row++;
        for (MemberState other : members) {
          if (other != state) {
            maxima.merge(row, other.maxima());
          }
        }
        int id =
            sampler.sample(
                activations.logits(), firstLogit(row), step.sampler(row), step.outputTokens(row), maxima, row);
        step.sampled(row, id, sampler.logprobs(), sampler.sawNan());
      } while (step.isDraft(row));
    }
  }

  /** Takes in what the member has just computed, while it is near. */
  private void foldMaxima(RowMaxima maxima, StepInputs step, WorkShare share) {
    int begin = share.first() * Kernels.ROW_GROUP;
    int end = Math.min(share.end() * Kernels.ROW_GROUP, config.vocabSize());
    for (int row = 0; row < step.numSampled(); row++) {
      if (step.sampler(row).takesMaximum(step.outputTokens(row))) {
        maxima.fold(row, activations.logits(), firstLogit(row), begin, end);
      }
    }
  }

  private long firstLogit(int row) {
    return (long) row * config.vocabSize();
  }

  /** True if every member does what concerns whole rows for itself, and has them in an input of its own. */
  private static boolean isOwn(int rows) {
    return rows == 1;
  }

  private static int rowsBegin(TeamMember member, int rows) {
    return isOwn(rows) ? 0 : member.begin(rows);
  }

  private static int rowsEnd(TeamMember member, int rows) {
    return isOwn(rows) ? rows : member.end(rows);
  }

  private static MatmulInput rowsInput(MemberState state, int rows, MatmulInput shared) {
    return isOwn(rows) ? state.ownRow() : shared;
  }

  private static KernelWorker rowsWorker(MemberState state, int rows) {
    return isOwn(rows) ? state.ownRowWorker() : state.worker();
  }

  /** y = norm(x), in the forms in which y will be read: the member's rows, then it waits for the others'. */
  private void norm(
      TeamMember member,
      MemberState state,
      MemorySegment x,
      MemorySegment weight,
      int rows,
      MatmulInput y,
      ActivationFormat[] formats) {
    int begin = rowsBegin(member, rows);
    int end = rowsEnd(member, rows);
    KernelWorker worker = rowsWorker(state, rows);
    if (begin < end) {
      for (ActivationFormat format : formats) {
        kernels.rmsNorm(x, embedding, weight, config.rmsEpsilon(), rows, y.as(format), begin, end, worker);
        worker.endNanos(Operation.RMS_NORM);
      }
    }
    if (!isOwn(rows)) {
      meet(member, state);
    } else if (worker != state.worker()) {
      state.worker().beginNanos();
    }
  }

  /** Some blocks of columns of an input in the form in which it will be read. */
  private void pack(
      MemberState state, MatmulInput input, ActivationFormat format, int rows, MemberState.Range blocks) {
    if (!blocks.isEmpty()) {
      kernels.activationPack(
          input.floats(), input.k(), rows, input.as(format), blocks.begin(), blocks.end(), state.worker());
      state.worker().endNanos(Operation.ACTIVATION_PACK);
    }
  }

  /** Of y = projection(x) the groups of columns in a share in which they are {@code groups} from {@code first} on. */
  private void project(
      MemberState state,
      Projection projection,
      MatmulInput x,
      int rows,
      MemorySegment y,
      WorkShare share,
      int first,
      int groups) {
    int begin = Math.clamp(share.first() - first, 0, groups);
    multiply(state, projection, x, rows, y, false, begin, Math.clamp(share.end() - first, 0, groups));
  }

  /** The member's columns of hidden += projection(x). */
  private void addProjection(MemberState state, Projection projection, MatmulInput x, int rows) {
    WorkShare share = state.share();
    share.begin(embeddingGroups, leastGroups(rows));
    while (share.next()) {
      multiply(state, projection, x, rows, activations.hidden(), true, share.first(), share.end());
    }
  }

  /** Groups that a piece of a matmul of so many rows has at least. */
  private static int leastGroups(int rows) {
    return rows <= MAX_ROWS_IN_SMALL_PIECES ? 1 : GROUPS_OF_MANY_ROWS;
  }

  /** Some groups of columns of a projection. */
  private void multiply(
      MemberState state,
      Projection projection,
      MatmulInput x,
      int rows,
      MemorySegment y,
      boolean accumulate,
      int begin,
      int end) {
    if (begin < end) {
      kernels.matmul(
          projection.weight(),
          projection.bias(),
          x.as(format(projection)),
          rows,
          y,
          projection.weight().n(),
          accumulate,
          begin,
          end,
          state.worker());
      state.worker().endNanos(Operation.MATMUL);
    }
  }
}
