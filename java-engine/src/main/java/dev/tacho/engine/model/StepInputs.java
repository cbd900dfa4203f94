package dev.tacho.engine.model;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tacho.engine.kernel.AttentionBatch;
import dev.tacho.engine.kernel.KvCacheLayer;
import dev.tacho.engine.kv.BlockTable;
import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.engine.sampling.TokenLogprobs;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * One step as the workers see it: a copy of the plan in the layout of the kernels, and the places where sampled tokens
 * arrive. Written by the engine thread before the launch, read by the workers until the step has been awaited; each
 * sampled row's result is written by the one worker that samples it. Sized once for the largest step.
 *
 * <pre>
 *   tokenIds   int32 [maxTokens]
 *   positions  int   [maxTokens]
 *   slots      int64 [maxTokens]      block * 16 + position % 16
 *   sampled rows r = 0 .. numSampled: token row sampledRow[r], sampler state, output tokens so far -> id, logprobs, NaN
 * </pre>
 */
final class StepInputs {
  private static final int NOT_SAMPLED = -1;

  private final RunnerLimits limits;
  private final int vocabSize;
  private final int numBlocks;
  private final MemorySegment tokenIds;
  private final MemorySegment slots;
  private final AttentionBatch batch;
  private final int[] positions;
  private final int[] sampledRows;
  private final @Nullable SamplerState[] samplers;
  private final int[] outputTokens;
  private final int[] sampledIds;
  private final @Nullable TokenLogprobs[] logprobs;
  private final boolean[] nan;
  private final int[] rowOfSequence;
  private int numSequences;
  private int numTokens;
  private int numSampled;

  /**
   * @param arena owns the memory
   * @param limits the largest step
   * @param vocabSize token ids are below it
   * @param numBlocks KV block numbers are below it
   * @param numKvHeads kv heads of the layers
   */
  StepInputs(Arena arena, RunnerLimits limits, int vocabSize, int numBlocks, int numKvHeads) {
    this.limits = limits;
    this.vocabSize = vocabSize;
    this.numBlocks = numBlocks;
    tokenIds = arena.allocate(JAVA_INT, limits.maxTokens());
    slots = arena.allocate(JAVA_LONG, limits.maxTokens());
    batch =
        new AttentionBatch(
            arena, limits.maxSequences(), limits.maxTokens(), limits.maxBlocks(), numKvHeads);
    positions = new int[limits.maxTokens()];
    int rows = limits.maxSampledRows();
    sampledRows = new int[rows];
    samplers = new @Nullable SamplerState[rows];
    outputTokens = new int[rows];
    sampledIds = new int[rows];
    logprobs = new @Nullable TokenLogprobs[rows];
    nan = new boolean[rows];
    rowOfSequence = new int[limits.maxSequences()];
  }

  /** Bytes off the heap that one of these takes, alignment apart. */
  static long bytes(RunnerLimits limits, int numKvHeads) {
    long items = ((long) limits.maxSequences() + limits.maxTokens() / AttentionBatch.ITEM_QUERIES) * numKvHeads;
    long ints =
        Math.addExact(
            Math.multiplyExact((long) limits.maxSequences(), limits.maxBlocks() + 2L),
            Math.multiplyExact(items, AttentionBatch.ITEM_INTS));
    return Math.addExact(
        Math.multiplyExact(ints, Integer.BYTES),
        Math.multiplyExact((long) limits.maxTokens(), Integer.BYTES + Long.BYTES));
  }

  /**
   * Copies a plan.
   *
   * @throws IllegalArgumentException as {@link ModelRunner#launch}
   */
  void load(StepPlan plan) {
    clear();
    if (plan.numTokens() > limits.maxTokens() || plan.numSequences() > limits.maxSequences()) {
      throw new IllegalArgumentException(
          "step of " + plan.numTokens() + " tokens in " + plan.numSequences() + " sequences, room for " + limits);
    }
    for (int i = 0; i < plan.numSequences(); i++) {
      int tokens = plan.scheduledTokens(i);
      addSequence(plan.sequence(i), plan.startPosition(i), tokens);
      numTokens += tokens;
      if (plan.samples(i)) {
        addSampledRow(plan.sequence(i), numTokens - 1);
      } else {
        rowOfSequence[i] = NOT_SAMPLED;
      }
      numSequences++;
    }
  }

  private void addSequence(Sequence sequence, int start, int tokens) {
    int end = start + tokens;
    if (start < 0 || tokens < 1 || end > sequence.length() || end > limits.maxContext()) {
      throw new IllegalArgumentException(
          sequence.requestId() + ": " + tokens + " tokens from position " + start + " of a sequence of "
              + sequence.length() + ", context limit " + limits.maxContext());
    }
    BlockTable table = sequence.blockTable();
    int blocks = Math.ceilDiv(end, KvCacheLayer.BLOCK_TOKENS);
    if (table.size() < blocks) {
      throw new IllegalArgumentException(
          sequence.requestId() + ": " + table.size() + " KV blocks for " + end + " tokens");
    }
    int index = batch.addSequence(tokens, end);
    for (int b = 0; b < blocks; b++) {
      int block = table.block(b);
      if (block < 0 || block >= numBlocks) {
        throw new IllegalArgumentException(
            sequence.requestId() + ": KV block " + block + ", the cache has " + numBlocks);
      }
      batch.setBlock(index, b, block);
    }
    for (int j = 0; j < tokens; j++) {
      int position = start + j;
      int id = sequence.token(position);
      if (id < 0 || id >= vocabSize) {
        throw new IllegalArgumentException(
            sequence.requestId() + ": token " + id + " at position " + position + ", the vocabulary has "
                + vocabSize);
      }
      long row = numTokens + (long) j;
      long slot =
          (long) table.block(position / KvCacheLayer.BLOCK_TOKENS) * KvCacheLayer.BLOCK_TOKENS
              + position % KvCacheLayer.BLOCK_TOKENS;
      tokenIds.setAtIndex(JAVA_INT, row, id);
      slots.setAtIndex(JAVA_LONG, row, slot);
      positions[numTokens + j] = position;
    }
  }

  private void addSampledRow(Sequence sequence, int tokenRow) {
    int row = numSampled++;
    rowOfSequence[numSequences] = row;
    sampledRows[row] = tokenRow;
    samplers[row] = sequence.sampler();
    outputTokens[row] = sequence.outputLength();
  }

  /** Forgets the plan and all that belongs to its requests. */
  void clear() {
    Arrays.fill(samplers, 0, numSampled, null);
    Arrays.fill(logprobs, 0, numSampled, null);
    numSequences = 0;
    numTokens = 0;
    numSampled = 0;
    batch.clear();
  }

  /** Writes what was sampled into a result, in the plan's order. */
  void write(StepResult result) {
    result.reset();
    for (int i = 0; i < numSequences; i++) {
      result.nextSequence();
      int row = rowOfSequence[i];
      if (row != NOT_SAMPLED) {
        result.addToken(sampledIds[row], logprobs[row]);
        if (nan[row]) {
          result.addNanRow();
        }
      }
    }
  }

  /** Tokens in the step. */
  int numTokens() {
    return numTokens;
  }

  /** Rows that are sampled. */
  int numSampled() {
    return numSampled;
  }

  /** See the drawing. */
  MemorySegment tokenIds() {
    return tokenIds;
  }

  /** See the drawing. */
  MemorySegment slots() {
    return slots;
  }

  /** The sequences, for attention. */
  AttentionBatch batch() {
    return batch;
  }

  /** Position in its sequence of a token row. */
  int position(int tokenRow) {
    return positions[tokenRow];
  }

  /** The token row whose hidden state makes sampled row {@code r}. */
  int sampledRow(int r) {
    return sampledRows[r];
  }

  /** Parameters and random numbers for sampled row {@code r}. */
  SamplerState sampler(int r) {
    SamplerState state = samplers[r];
    if (state == null) {
      throw new IndexOutOfBoundsException("sampled row " + r + " of " + numSampled);
    }
    return state;
  }

  /** Output tokens that the sequence of sampled row {@code r} had before this step. */
  int outputTokens(int r) {
    return outputTokens[r];
  }

  /** Takes what was sampled from row {@code r}; each row is written by one worker. */
  void sampled(int r, int id, @Nullable TokenLogprobs tokenLogprobs, boolean sawNan) {
    sampledIds[r] = id;
    logprobs[r] = tokenLogprobs;
    nan[r] = sawNan;
  }
}
