package dev.tacho.engine.model;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tacho.engine.kernel.AttentionBatch;
import dev.tacho.engine.kernel.AttentionShape;
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
 * arrive. Written by the engine thread before the launch, read by the workers until the step has been awaited; what is
 * sampled for a sequence is written by one worker. Sized once for the largest step.
 *
 * <pre>
 *   tokenIds   int32 [maxTokens]
 *   positions  int   [maxTokens]
 *   slots      int64 [maxTokens]      block * 16 + position % 16
 *   sampled rows r = 0 .. numSampled: token row sampledRow[r], sampler state, output tokens so far, draft that stands
 *                                     in the next token row or -1 -> id, logprobs, NaN
 * </pre>
 *
 * A sequence with drafts has a sampled row before each of them and one after the last. They are sampled in this order,
 * up to the first whose token is not the draft that stands behind it: so far each row was computed from the tokens that
 * were chosen, so they are those that the model gives without drafts, and with the same random numbers, which depend on
 * the place alone.
 *
 * <p>A token that the step in flight is about to sample has no id yet when this is loaded: its row and that step's are
 * noted, and the workers fill it in when that step has ended.
 */
final class StepInputs {
  private static final int NOT_SAMPLED = -1;
  private static final int NO_DRAFT = -1;

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
  private final int[] drafts;
  private final boolean[] nan;
  private final @Nullable Sequence[] sequences;
  private final int[] rowOfSequence;
  private final int[] firstRows;
  // Token rows without an id, and the rows of the step before that sample it.
  private final int[] openRows;
  private final int[] openSources;
  private int numOpen;
  private @Nullable StepInputs before;
  private int numSequences;
  private int numTokens;
  private int numSampled;
  private int numSampling;

  /**
   * @param arena owns the memory
   * @param limits the largest step
   * @param vocabSize token ids are below it
   * @param numBlocks KV block numbers are below it
   * @param workers members of the team
   * @param shape attention of the layers
   */
  StepInputs(
      Arena arena, RunnerLimits limits, int vocabSize, int numBlocks, int workers, AttentionShape shape) {
    this.limits = limits;
    this.vocabSize = vocabSize;
    this.numBlocks = numBlocks;
    tokenIds = arena.allocate(JAVA_INT, limits.maxTokens());
    slots = arena.allocate(JAVA_LONG, limits.maxTokens());
    batch =
        new AttentionBatch(
            arena, limits.maxSequences(), limits.maxTokens(), limits.maxBlocks(), workers, shape);
    positions = new int[limits.maxTokens()];
    int rows = limits.maxSampledRows();
    sampledRows = new int[rows];
    samplers = new @Nullable SamplerState[rows];
    outputTokens = new int[rows];
    sampledIds = new int[rows];
    logprobs = new @Nullable TokenLogprobs[rows];
    drafts = new int[rows];
    nan = new boolean[rows];
    sequences = new @Nullable Sequence[limits.maxSequences()];
    openRows = new int[limits.maxSequences()];
    openSources = new int[limits.maxSequences()];
    rowOfSequence = new int[limits.maxSequences()];
    firstRows = new int[limits.maxSequences()];
  }

  /** Bytes off the heap that one of these takes, alignment apart. */
  static long bytes(RunnerLimits limits, int workers, AttentionShape shape) {
    return Math.addExact(
        AttentionBatch.bytes(limits.maxSequences(), limits.maxTokens(), limits.maxBlocks(), workers, shape),
        Math.multiplyExact((long) limits.maxTokens(), Integer.BYTES + Long.BYTES));
  }

  /**
   * Copies a plan.
   *
   * @param plan what to compute
   * @param inFlight the step launched before, if it has not been awaited
   * @throws IllegalArgumentException as {@link ModelRunner#launch}
   */
  void load(StepPlan plan, @Nullable StepInputs inFlight) {
    clear();
    before = inFlight;
    if (plan.numTokens() > limits.maxTokens() || plan.numSequences() > limits.maxSequences()) {
      throw new IllegalArgumentException(
          "step of " + plan.numTokens() + " tokens in " + plan.numSequences() + " sequences, room for " + limits);
    }
    int source = 0;
    for (int i = 0; i < plan.numSequences(); i++) {
      Sequence sequence = plan.sequence(i);
      int known = plan.startPosition(i) + plan.scheduledTokens(i) - plan.numDrafts(i);
      if (inFlight != null && known == sequence.length() + 1) {
        source = inFlight.indexOf(sequence, source);
        addOpenRow(numTokens + plan.scheduledTokens(i) - plan.numDrafts(i) - 1, inFlight.rowOfSequence[source]);
        known--;
      }
      addSequence(plan, i, known);
      if (plan.samples(i)) {
        addSampledRows(plan, i);
      } else {
        rowOfSequence[i] = NOT_SAMPLED;
      }
      sequences[i] = sequence;
      numTokens += plan.scheduledTokens(i);
      numSequences++;
    }
    batch.plan();
  }

  /** Where a sequence stands; the search begins at a place, as two steps have their sequences in the same order. */
  private int indexOf(Sequence sequence, int from) {
    for (int n = 0, i = from; n < numSequences; n++, i++) {
      i = i < numSequences ? i : 0;
      if (sequences[i] == sequence && rowOfSequence[i] != NOT_SAMPLED) {
        return i;
      }
    }
    throw new IllegalArgumentException(
        sequence.requestId() + ": no token at position " + sequence.length() + ", and no step in flight samples it");
  }

  private void addOpenRow(int tokenRow, int source) {
    openRows[numOpen] = tokenRow;
    openSources[numOpen++] = source;
  }

  private void addSequence(StepPlan plan, int i, int known) {
    Sequence sequence = plan.sequence(i);
    int start = plan.startPosition(i);
    int tokens = plan.scheduledTokens(i);
    int end = start + tokens;
    if (start < 0 || tokens < 1 || known > sequence.length() || end > limits.maxContext()) {
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
      int id = tokenId(plan, i, position, known);
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

  /** The id at a position; any id where it is not known, as a draft that is never right or a token still to come. */
  private static int tokenId(StepPlan plan, int i, int position, int known) {
    if (position < known) {
      return plan.sequence(i).token(position);
    }
    int draft = position - (plan.startPosition(i) + plan.scheduledTokens(i) - plan.numDrafts(i));
    return draft < 0 ? 0 : Math.max(0, plan.draft(i, draft));
  }

  private void addSampledRows(StepPlan plan, int i) {
    Sequence sequence = plan.sequence(i);
    int numDrafts = plan.numDrafts(i);
    int firstToken = plan.scheduledTokens(i) - numDrafts - 1;
    if (firstToken < 0 || numSampled + numDrafts >= sampledRows.length) {
      throw new IllegalArgumentException(
          sequence.requestId() + ": " + numDrafts + " drafts among " + plan.scheduledTokens(i)
              + " tokens, room for " + limits);
    }
    rowOfSequence[i] = numSampled;
    firstRows[numSampling++] = numSampled;
    for (int j = 0; j <= numDrafts; j++) {
      int row = numSampled++;
      sampledRows[row] = numTokens + firstToken + j;
      samplers[row] = sequence.sampler();
      outputTokens[row] = plan.startPosition(i) + firstToken + j + 1 - sequence.promptLength();
      drafts[row] = j < numDrafts ? plan.draft(i, j) : NO_DRAFT;
    }
  }

  /** Forgets the plan and all that belongs to its requests. */
  void clear() {
    Arrays.fill(samplers, 0, numSampled, null);
    Arrays.fill(logprobs, 0, numSampled, null);
    Arrays.fill(sequences, 0, numSequences, null);
    numSequences = 0;
    numTokens = 0;
    numSampled = 0;
    numSampling = 0;
    numOpen = 0;
    before = null;
    batch.clear();
  }

  /** Writes what was sampled into a result, in the plan's order. */
  void write(StepResult result) {
    result.reset();
    for (int i = 0; i < numSequences; i++) {
      result.nextSequence();
      int row = rowOfSequence[i];
      boolean more = row != NOT_SAMPLED;
      while (more) {
        result.addToken(sampledIds[row], logprobs[row]);
        if (nan[row]) {
          result.markNan();
        }
        more = isDraft(row);
        row++;
      }
    }
  }

  /** Takes the tokens that the step before has sampled into a worker's token rows; the workers have ended that step. */
  void fillIn(int begin, int end) {
    StepInputs source = before;
    for (int i = 0; i < numOpen && source != null; i++) {
      if (openRows[i] >= begin && openRows[i] < end) {
        tokenIds.setAtIndex(JAVA_INT, openRows[i], source.sampledIds[openSources[i]]);
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

  /** Sequences that get tokens. */
  int numSampling() {
    return numSampling;
  }

  /** The first sampled row of sequence {@code i} of them. */
  int firstRow(int i) {
    return firstRows[i];
  }

  /** True if the token of sampled row {@code r} is the draft behind it, so that row {@code r + 1} is to be sampled. */
  boolean isDraft(int r) {
    return sampledIds[r] == drafts[r];
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

  /** Output tokens that stand before the one of sampled row {@code r}. */
  int outputTokens(int r) {
    return outputTokens[r];
  }

  /** Takes what was sampled from row {@code r}. */
  void sampled(int r, int id, @Nullable TokenLogprobs tokenLogprobs, boolean sawNan) {
    sampledIds[r] = id;
    logprobs[r] = tokenLogprobs;
    nan[r] = sawNan;
  }
}
