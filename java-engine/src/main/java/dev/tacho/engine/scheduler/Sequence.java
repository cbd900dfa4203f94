package dev.tacho.engine.scheduler;

import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.kv.BlockTable;
import dev.tacho.engine.kv.PrefixHashes;
import dev.tacho.engine.kv.SequenceBlocks;
import dev.tacho.engine.sampling.NgramProposer;
import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.metrics.event.FinishReason;
import java.util.Arrays;
import java.util.Collection;
import org.jspecify.annotations.Nullable;

/**
 * One sequence of tokens that the engine extends: a request, or one of the n of a request. Owned by the engine thread
 * from the moment it enters the scheduler.
 */
public final class Sequence {
  /** {@link #stopTokenId()} of a sequence that no stop token has ended. */
  public static final int NO_STOP_TOKEN = -1;

  /** A draft whose id the scheduler does not know. */
  public static final int DRAFT_PLACEHOLDER = -1;

  private static final int[] NONE = {};

  // What the request says.
  private final String requestId;
  private final int slot;
  private final int generation;
  private final SamplerState sampler;
  private final long arrivalNanos;
  private final int priority;
  private final int promptLength;
  private final int maxTokens;
  private final boolean prefixLookup;
  private final boolean arrivesBlocked;
  private final String adapterName;
  private final int[] eosTokenIds;
  private final int[] stopTokenIds;
  private final @Nullable RepetitionLimit repetition;
  private final SequenceBlocks blocks;

  // State; all of it is the scheduler's.
  SequenceState state = SequenceState.NEW;
  // Its own progress object, and the one that counts: another while the sequence runs.
  private final SequenceProgress own;
  private SequenceProgress progress;
  int[] drafts = NONE;
  // Passed over for lack of something else than room.
  boolean deferred;
  // What a blocked sequence lacked is there; the planner has not come to it yet.
  boolean unblocked;
  int numPreemptions;
  // When it entered the queue the last time, and the sum of its waits before that.
  long waitingSinceNanos;
  long waitedBeforeNanos;
  int cachedTokens;
  int stopTokenId = NO_STOP_TOKEN;
  @Nullable FinishReason finishReason;
  // The last step whose output for this sequence is thrown away.
  long discardedStep;
  // The step that must have ended before the blocks of an aborted sequence are free.
  long fencedByStep;

  // Links of the one list or heap that holds the sequence.
  @Nullable Sequence previous;
  @Nullable Sequence next;
  int heapIndex = -1;

  private Sequence(Builder b) {
    requestId = b.requestId;
    slot = b.slot;
    generation = b.generation;
    sampler = b.sampler;
    arrivalNanos = b.arrivalNanos;
    priority = b.priority;
    maxTokens = b.maxTokens;
    prefixLookup = b.prefixLookup;
    arrivesBlocked = b.blocked;
    adapterName = b.adapterName;
    repetition = b.repetition;
    blocks = new SequenceBlocks(new PrefixHashes(b.adapterName, b.cacheSalt));
    SamplingParams params = b.sampler.params();
    eosTokenIds = params.ignoreEos() ? NONE : toInts(b.sampler.eosTokenIds());
    stopTokenIds = toInts(params.stopTokenIds());
    promptLength = b.promptTokens.length;
    own = new SequenceProgress(b.promptTokens.clone(), blocks);
    own.sequence = this;
    own.promptLength = promptLength;
    own.length = promptLength;
    own.endsByLength = eosTokenIds.length == 0 && stopTokenIds.length == 0 && repetition == null;
    progress = own;
  }

  private static int[] toInts(Collection<Integer> ids) {
    return ids.isEmpty() ? NONE : ids.stream().mapToInt(Integer::intValue).toArray();
  }

  /**
   * Starts a sequence.
   *
   * @param requestId unique among the live ones
   * @param promptTokens the prompt, at least one id
   * @param sampler parameters and random numbers
   */
  public static Builder builder(String requestId, int[] promptTokens, SamplerState sampler) {
    return new Builder(requestId, promptTokens, sampler);
  }

  /** The request's id. */
  public String requestId() {
    return requestId;
  }

  /** The owner's index for what it keeps of this sequence. */
  public int slot() {
    return slot;
  }

  /** Tells this sequence from earlier ones in the same slot. */
  public int generation() {
    return generation;
  }

  /** Parameters and random numbers of the sampler. */
  public SamplerState sampler() {
    return sampler;
  }

  /** When the request arrived; orders the queue under the priority policy. */
  public long arrivalNanos() {
    return arrivalNanos;
  }

  /** Smaller is more urgent. */
  public int priority() {
    return priority;
  }

  /** Output tokens at most. */
  public int maxTokens() {
    return maxTokens;
  }

  /** False if the prefix cache must not be read, because all prompt positions are to be computed. */
  public boolean prefixLookup() {
    return prefixLookup;
  }

  /** True if it may not run before {@link Scheduler#unblock}. */
  public boolean arrivesBlocked() {
    return arrivesBlocked;
  }

  /** Name of the LoRA adapter, empty for none. */
  public String adapterName() {
    return adapterName;
  }

  /** The sequence's KV blocks; those of the first cache group where there are several. */
  public BlockTable blockTable() {
    return blocks.table(0);
  }

  /** The sequence's KV blocks of all cache groups. */
  public SequenceBlocks blocks() {
    return blocks;
  }

  /** Tokens of the prompt. */
  public int promptLength() {
    return promptLength;
  }

  /** Tokens of prompt and output. */
  public int length() {
    return progress.length;
  }

  /** Tokens of the output. */
  public int outputLength() {
    return progress.length - promptLength;
  }

  /** Token at a position of prompt and output. */
  public int token(int position) {
    if (position >= progress.length) {
      throw new IndexOutOfBoundsException("token " + position + " of " + progress.length);
    }
    return progress.tokens[position];
  }

  /**
   * Has a proposer guess the next tokens.
   *
   * @param drafts where they go
   * @return how many there are
   */
  public int propose(NgramProposer proposer, int[] drafts) {
    return proposer.propose(progress.tokens, progress.length, drafts);
  }

  /** Where it is in its life. */
  public SequenceState state() {
    return state;
  }

  /** Leading tokens whose keys and values are in the KV cache or in a step that has been scheduled. */
  public int computedTokens() {
    return progress.computedTokens;
  }

  /** Leading tokens whose keys and values are in the KV cache, as far as the output of steps has been processed. */
  public int processedTokens() {
    return progress.computedTokens - (progress.inFlightTokens - progress.staleTokens);
  }

  /** Tokens scheduled in steps whose output has not been processed. */
  public int inFlightTokens() {
    return progress.inFlightTokens;
  }

  /** True if what a step gives for this sequence is thrown away, as the sequence was taken back while it ran. */
  public boolean discards(long step) {
    return step <= discardedStep;
  }

  /** Draft tokens that wait for the next step. */
  public int numDrafts() {
    return progress.numDrafts;
  }

  /** When it entered the queue: for the first time, or again after a preemption. */
  public long waitingSinceNanos() {
    return waitingSinceNanos;
  }

  /** How long a waiting sequence has waited altogether: now, and each time before it ran. */
  public long waitedNanos(long nanos) {
    return waitedBeforeNanos + (nanos - waitingSinceNanos);
  }

  /** How often it lost its blocks to another sequence. */
  public int numPreemptions() {
    return numPreemptions;
  }

  /** Why it ended, or null while it lives. */
  public @Nullable FinishReason finishReason() {
    return finishReason;
  }

  /** The stop token that ended it (not an end-of-text token), or {@link #NO_STOP_TOKEN}. */
  public int stopTokenId() {
    return stopTokenId;
  }

  /** True if the sequence is in the queue or takes part in steps. */
  public boolean isLive() {
    return state != SequenceState.NEW && state != SequenceState.FINISHED;
  }

  /** What a step looks at; another object after {@link #moveProgress} and {@link #keepProgress}. */
  SequenceProgress progress() {
    return progress;
  }

  /** Has the progress kept somewhere else. */
  void moveProgress(SequenceProgress place) {
    place.copyFrom(progress);
    progress = place;
  }

  /** Keeps the progress itself again; gives the object that held it. */
  SequenceProgress keepProgress() {
    SequenceProgress place = progress;
    own.copyFrom(place);
    progress = own;
    return place;
  }

  /** Sets the drafts for the next step to {@code count} placeholders. */
  void padDrafts(int count) {
    if (drafts.length < count) {
      drafts = new int[count];
    }
    Arrays.fill(drafts, 0, count, DRAFT_PLACEHOLDER);
    progress.numDrafts = count;
  }

  /** Sets the drafts for the next step. */
  void setDrafts(int[] ids, int count) {
    if (drafts.length < count) {
      drafts = new int[count];
    }
    System.arraycopy(ids, 0, drafts, 0, count);
    progress.numDrafts = count;
  }

  /**
   * Applies the stop rules to the token appended last, in their order: end-of-text, stop tokens, length, repetition.
   * {@code min_tokens} does not hold back the first two: the sampler never chooses those tokens before it.
   *
   * @return why the sequence ends, or null
   */
  @Nullable FinishReason stopReason() {
    int last = progress.tokens[progress.length - 1];
    if (contains(eosTokenIds, last)) {
      return FinishReason.STOP;
    }
    if (contains(stopTokenIds, last)) {
      stopTokenId = last;
      return FinishReason.STOP;
    }
    if (progress.length >= progress.fullLength) {
      return FinishReason.LENGTH;
    }
    if (repetition != null && outputLength() >= sampler.params().minTokens() && repetition.reachedBy(this)) {
      return FinishReason.REPETITION;
    }
    return null;
  }

  private static boolean contains(int[] ids, int id) {
    for (int i : ids) {
      if (i == id) {
        return true;
      }
    }
    return false;
  }

  @Override
  public String toString() {
    return requestId + " " + state + " " + progress.computedTokens + "/" + progress.length;
  }

  /** Collects what a sequence is made of. */
  public static final class Builder {
    private final String requestId;
    private final int[] promptTokens;
    private final SamplerState sampler;
    private int slot;
    private int generation;
    private long arrivalNanos;
    private int priority;
    private int maxTokens;
    private boolean prefixLookup = true;
    private boolean blocked;
    private String adapterName = "";
    private String cacheSalt = "";
    private @Nullable RepetitionLimit repetition;

    private Builder(String requestId, int[] promptTokens, SamplerState sampler) {
      if (promptTokens.length == 0) {
        throw new IllegalArgumentException("the prompt of " + requestId + " has no token");
      }
      this.requestId = requestId;
      this.promptTokens = promptTokens;
      this.sampler = sampler;
      this.maxTokens = sampler.params().maxTokens();
    }

    /** The owner's index for what it keeps, and what tells this sequence from earlier ones there. */
    public Builder slot(int index, int slotGeneration) {
      slot = index;
      generation = slotGeneration;
      return this;
    }

    /** See {@link Sequence#arrivalNanos()}. */
    public Builder arrivalNanos(long value) {
      arrivalNanos = value;
      return this;
    }

    /** See {@link Sequence#priority()}. */
    public Builder priority(int value) {
      priority = value;
      return this;
    }

    /** Output tokens at most, already cut to what the context leaves; default: the parameters' own. */
    public Builder maxTokens(int value) {
      maxTokens = value;
      return this;
    }

    /** See {@link Sequence#prefixLookup()}. */
    public Builder prefixLookup(boolean value) {
      prefixLookup = value;
      return this;
    }

    /** The sequence waits until {@link Scheduler#unblock}, and lets others go ahead. */
    public Builder blocked(boolean value) {
      blocked = value;
      return this;
    }

    /** Name of the LoRA adapter: prefixes are shared only under the same one. */
    public Builder adapterName(String value) {
      adapterName = value;
      return this;
    }

    /** Prefixes are shared only under the same salt. */
    public Builder cacheSalt(String value) {
      cacheSalt = value;
      return this;
    }

    /** Ends the sequence when its output repeats itself. */
    public Builder repetition(RepetitionLimit value) {
      repetition = value;
      return this;
    }

    /** The sequence. */
    public Sequence build() {
      if (maxTokens < 1) {
        throw new IllegalArgumentException(
            "max_tokens of " + requestId + " is " + maxTokens + ", at least 1 is needed");
      }
      return new Sequence(this);
    }
  }
}
