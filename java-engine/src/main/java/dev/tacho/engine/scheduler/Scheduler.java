package dev.tacho.engine.scheduler;

import dev.tacho.engine.InvalidRequestException;
import dev.tacho.engine.PromptTooLongException;
import dev.tacho.engine.kv.BlockAllocator;
import dev.tacho.engine.kv.BlockHasher;
import dev.tacho.engine.kv.BlockTable;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvGroup;
import dev.tacho.metrics.event.FinishReason;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Decides which sequences take part in the next step and with how many tokens, and what becomes of them when the step
 * has ended. There is no prefill phase and no decode phase: each sequence only has to let its computed tokens catch up
 * with the tokens it has.
 *
 * <p>A step: sequences that run come first, in the order of their admission; then waiting ones are admitted while token
 * budget, places and KV blocks last. If a running one gets no blocks, a victim goes back to the queue and is computed
 * again later. A plan that {@link #schedule} returns with tokens in it must come back to {@link #update} or
 * {@link #fail}, in order; an empty one need not.
 *
 * <p>All calls come from the engine thread. It owns every sequence that lives and the pool. A step of running sequences
 * allocates nothing; counts are kept, never recounted.
 */
public final class Scheduler {
  /** Waiting sequences that a question about all of them looks at. */
  private static final int LOOK = 1024;

  private final SchedulerConfig config;
  private final KvBlockPool pool;
  private final BlockAllocator blocks;
  private final @Nullable BlockHasher hasher;
  private final SchedulerListener listener;
  private final StepPlanner planner;
  private final RunningSequences running;
  private final WaitingQueue waiting;
  // Aborted while their step computes: their blocks come free when it has ended.
  private final SequenceList fenced = new SequenceList();
  private final StepPlan[] plans = {new StepPlan(), new StepPlan()};
  private long lastStep;
  private long launchedStep;
  private long processedStep;

  /**
   * A scheduler for a model whose layers all attend to all tokens.
   *
   * @param config limits and rules
   * @param pool the KV blocks; this scheduler is their only user
   * @param listener learns what happens
   */
  public Scheduler(SchedulerConfig config, KvBlockPool pool, SchedulerListener listener) {
    this(config, pool, List.of(KvGroup.full()), listener);
  }

  /**
   * A scheduler for a model with sliding windows.
   *
   * @param config limits and rules
   * @param pool the KV blocks of all groups; this scheduler is their only user
   * @param groups layers by what they keep; the one that keeps all tokens, if there is one, first
   * @param listener learns what happens
   */
  public Scheduler(SchedulerConfig config, KvBlockPool pool, List<KvGroup> groups, SchedulerListener listener) {
    this.config = config;
    this.pool = pool;
    this.listener = listener;
    int stepsInFlight = config.asyncScheduling() ? 2 : 1;
    blocks =
        new BlockAllocator(
            pool,
            groups,
            config.maxModelLen(),
            stepsInFlight * config.maxNumBatchedTokens(),
            config.watermark(),
            config.reserveFullSequence());
    hasher = pool.prefixCaching() ? config.prefixHashAlgorithm().newHasher(pool.blockTokens()) : null;
    planner = new StepPlanner(config, pool, blocks, hasher, listener);
    running = planner.running();
    waiting = planner.waiting();
  }

  /** Limits and rules. */
  public SchedulerConfig config() {
    return config;
  }

  /** The KV blocks. */
  public KvBlockPool pool() {
    return pool;
  }

  /** Sequences that take part in steps. */
  public int numRunning() {
    return running.size();
  }

  /** Sequences in the queue that could be admitted as soon as there is room. */
  public int numWaiting() {
    return waiting.size() - numDeferred();
  }

  /** Sequences in the queue that were passed over, because something else than room is missing. */
  public int numDeferred() {
    return planner.numDeferred();
  }

  /** True if a sequence runs or waits. */
  public boolean hasUnfinished() {
    return running.size() + waiting.size() > 0;
  }

  /** True if there is an unfinished sequence, or a step whose output has not been processed. */
  public boolean hasWork() {
    return hasUnfinished() || stepInFlight();
  }

  /** Running sequences in the order of their admission; a copy, for tests and questions. */
  public List<Sequence> running() {
    return running.toList();
  }

  /**
   * The waiting sequence whose present wait is the longest; null if none waits. Of a long queue only the first
   * {@value #LOOK} are compared. Between two steps.
   */
  public @Nullable Sequence longestWaiting() {
    return waiting.longestWaiting(LOOK);
  }

  /** Waiting sequences, next first; a copy, for tests and questions. */
  public List<Sequence> waiting() {
    return waiting.ordered();
  }

  /** Blocks that a sequence lacks for all the tokens that it has; what the prefix cache may hold is not deducted. */
  public long blocksMissing(Sequence sequence) {
    long held = 0;
    for (int g = 0; g < sequence.blocks().numGroups(); g++) {
      held += sequence.blocks().table(g).size();
    }
    return Math.max(0, blocks.blocksForSequence(sequence.length()) - held);
  }

  /**
   * Puts a new sequence into the queue.
   *
   * @throws PromptTooLongException if the context has no room for one output token
   * @throws InvalidRequestException if the KV cache can never hold the prompt
   */
  public void add(Sequence sequence, long nanos) {
    if (sequence.state != SequenceState.NEW) {
      throw new IllegalStateException(sequence + " is not new");
    }
    int prompt = sequence.promptLength();
    if (prompt >= config.maxModelLen()) {
      throw new PromptTooLongException(prompt, config.maxModelLen());
    }
    int longest = (int) Math.min((long) prompt + sequence.maxTokens(), config.maxModelLen());
    // The last token is never computed, so it needs no room.
    long needed = blocks.blocksForSequence(longest - 1);
    if (needed > pool.numBlocks() - 1) {
      throw new InvalidRequestException(
          "max_tokens",
          "prompt and output of up to "
              + longest
              + " tokens need "
              + needed
              + " blocks of the KV cache, which has "
              + (pool.numBlocks() - 1));
    }
    blocks.open(sequence.blocks());
    sequence.progress().fullLength = longest;
    if (hasher != null) {
      sequence.progress().hashBlocks(hasher);
    }
    planner.add(sequence, nanos);
    listener.queued(sequence, nanos);
  }

  /**
   * Ends a sequence from outside: the client went away, a stop string was found, a deadline passed. Tokens of a step
   * that computes at this moment are thrown away.
   *
   * @param sequence in any state
   * @param reason why
   * @param nanos now
   * @return false if it had ended before or never entered the scheduler; nothing happens then
   */
  public boolean abort(Sequence sequence, FinishReason reason, long nanos) {
    if (!sequence.isLive()) {
      return false;
    }
    planner.remove(sequence);
    SequenceProgress progress = sequence.progress();
    if (config.guardBlocks() && progress.inFlightTokens > progress.staleTokens) {
      sequence.fencedByStep = launchedStep;
      fenced.addLast(sequence);
    } else {
      blocks.release(sequence.blocks());
    }
    finish(sequence, reason, nanos);
    return true;
  }

  /**
   * What a blocked sequence lacked is there: it is a candidate from the next step on. Does nothing to another. If it
   * will never be there, end the sequence with {@link #abort}.
   */
  public void unblock(Sequence sequence) {
    sequence.unblocked = true;
  }

  /**
   * Empties the prefix cache if no block is in use.
   *
   * @param preemptRunning send all running sequences back to the queue first; what a step computes for them at this
   *     moment is thrown away
   * @param nanos now
   * @return false if blocks are in use; nothing is changed then, except for the preemptions asked for
   */
  public boolean resetPrefixCache(boolean preemptRunning, long nanos) {
    if (preemptRunning) {
      for (Sequence s = running.last(); s != null; s = running.last()) {
        s.discardedStep = launchedStep;
        planner.preempt(s, nanos);
      }
    }
    boolean reset = pool.reset();
    if (reset) {
      listener.prefixCacheReset();
    }
    return reset;
  }

  /** True if a step was planned whose output has not been processed. */
  public boolean stepInFlight() {
    return launchedStep > processedStep;
  }

  /** What is held back. */
  public PauseState pause() {
    return planner.pause();
  }

  /** Holds back admissions or everything, from the next step on. */
  public void setPause(PauseState state) {
    planner.setPause(state);
  }

  /**
   * Takes the drafts that a proposer made for a sequence's next step. Ignored if the sequence has ended; dropped if it
   * is in the middle of its prompt. Not for asynchronous scheduling, which plans a step before the
   * tokens are known that drafts continue.
   *
   * @param sequence the sequence
   * @param ids drafts
   * @param count how many of them, at most {@code numSpeculativeTokens}
   */
  public void setDrafts(Sequence sequence, int[] ids, int count) {
    if (count > config.numSpeculativeTokens()) {
      throw new IllegalArgumentException(
          count + " drafts, num_speculative_tokens is " + config.numSpeculativeTokens());
    }
    if (sequence.isLive()) {
      sequence.setDrafts(ids, sequence.progress().midPrompt ? 0 : count);
    }
  }

  /**
   * Plans the next step. Two plans alternate: the one returned is valid until the call after the next.
   *
   * @param nanos now: the time of all admissions and preemptions in it
   * @return the plan; empty if nothing can run
   */
  public StepPlan schedule(long nanos) {
    StepPlan plan = plans[(int) ((lastStep + 1) & 1)];
    if (plan.numTokens() > 0 && plan.step() > processedStep) {
      throw new IllegalStateException("step " + plan.step() + " has not been given back, and another is in flight");
    }
    pool.setNanos(nanos);
    planner.plan(plan, ++lastStep, nanos);
    if (plan.numTokens() > 0) {
      launchedStep = plan.step();
    }
    return plan;
  }

  /**
   * Takes the output of a step: appends tokens, applies the stop rules, frees the blocks of what has ended.
   *
   * @param plan the oldest one that has not been given back
   * @param result its tokens
   * @param batchNanos the time of all of them
   * @param outputs is emptied and filled with what is to be delivered
   */
  public void update(StepPlan plan, StepResult result, long batchNanos, StepOutputs outputs) {
    if (result.numSequences() != plan.numSequences()) {
      throw new IllegalArgumentException(
          "step " + plan.step() + " has " + plan.numSequences() + " sequences, its result " + result.numSequences());
    }
    processed(plan);
    outputs.reset(plan);
    listener.outputsBegin(plan, batchNanos);
    for (int i = 0; i < plan.numSequences(); i++) {
      SequenceProgress progress = plan.progress(i);
      // One that has a place runs; whether another has ended is not looked up for nothing.
      if (progress.place != SequenceProgress.NO_PLACE || plan.sequence(i).state != SequenceState.FINISHED) {
        takeOutput(plan.sequence(i), progress, plan, i, result, batchNanos, outputs);
      }
    }
    listener.outputsEnd();
  }

  private void takeOutput(
      Sequence s,
      SequenceProgress progress,
      StepPlan plan,
      int i,
      StepResult result,
      long batchNanos,
      StepOutputs outputs) {
    boolean stale = progress.staleTokens > 0;
    progress.inFlightTokens -= plan.scheduledTokens(i);
    if (stale) {
      progress.staleTokens -= plan.scheduledTokens(i);
    }
    int count = result.tokenCount(i);
    // What is thrown away was scheduled before a preemption.
    if (count == 0 || (stale && s.discards(plan.step()))) {
      return;
    }
    int drafts = plan.numDrafts(i);
    int rejected = Math.max(0, drafts - (count - 1));
    if (!stale) {
      progress.computedTokens -= rejected;
      if (config.asyncScheduling()) {
        progress.placeholders -= rejected + count;
      }
    }
    outputs.add(plan.place(i));
    FinishReason reason = null;
    int taken = 0;
    while (taken < count && reason == null) {
      int id = result.token(i, taken);
      progress.append(id);
      outputs.addToken(id, result.logprobs(i, taken));
      taken++;
      if (!progress.endsByLength || progress.length >= progress.fullLength) {
        reason = s.stopReason();
      }
    }
    if (!stale) {
      progress.computedTokens -= count - taken;
      int processedTokens = progress.computedTokens - progress.inFlightTokens;
      if (hasher != null && processedTokens > progress.quietUntil) {
        progress.hashBlocks(hasher);
        blocks.publish(progress.blocks, processedTokens, progress.promptLength);
      }
    }
    if (!progress.prefillReported) {
      progress.prefillReported = true;
      reportPrefill(s);
    }
    if (drafts > 0) {
      listener.draftsVerified(s, drafts, count - 1);
      outputs.drafts(drafts, count - 1);
    }
    if (result.hasNan(i)) {
      listener.nanInLogits(s);
    }
    listener.tokens(s, taken);
    if (reason != null) {
      outputs.finish(reason);
      end(s, reason, batchNanos);
    }
  }

  private void reportPrefill(Sequence s) {
    int prompt = s.promptLength();
    int created = Math.min(blocks.publishedTokens(s.blocks()), prompt) - s.cachedTokens;
    listener.prefillStats(s, prompt, s.cachedTokens, 0, Math.max(0, created));
  }

  /**
   * Ends all sequences of a step that could not be computed, with {@link FinishReason#ERROR}. What they put into the
   * prefix cache in this step is taken out again. A plan made after this one builds on it, so it must fail, too.
   *
   * @param plan the oldest one that has not been given back
   * @param nanos now
   * @param outputs is emptied and filled with the sequences that ended
   */
  public void fail(StepPlan plan, long nanos, StepOutputs outputs) {
    for (int i = 0; i < plan.numSequences(); i++) {
      Sequence s = plan.sequence(i);
      if (s.isLive() && s.blockTable().size() == 0) {
        // It was preempted while the step computed, so which blocks hold garbage is not known any more. One that has
        // ended put nothing into the cache in this step, or its step before has failed and it was taken out there.
        pool.forgetAll();
      } else {
        blocks.forget(s.blocks(), plan.startPosition(i) / pool.blockTokens());
      }
    }
    processed(plan);
    outputs.reset(plan);
    listener.outputsBegin(plan, nanos);
    for (int i = 0; i < plan.numSequences(); i++) {
      Sequence s = plan.sequence(i);
      if (s.isLive()) {
        outputs.add(plan.place(i));
        outputs.finish(FinishReason.ERROR);
        end(s, FinishReason.ERROR, nanos);
      }
    }
    listener.outputsEnd();
  }

  /** Recounts: true if each block's owners are exactly the table entries that name it. For after a failure. */
  public boolean audit() {
    int[] entries = new int[pool.numBlocks()];
    count(running.toList(), entries);
    count(waiting.ordered(), entries);
    count(fenced.toList(), entries);
    return pool.audit(entries);
  }

  private static void count(List<Sequence> sequences, int[] entries) {
    for (Sequence s : sequences) {
      for (int g = 0; g < s.blocks().numGroups(); g++) {
        BlockTable table = s.blocks().table(g);
        for (int i = 0; i < table.size(); i++) {
          entries[table.block(i)]++;
        }
      }
    }
  }

  private void processed(StepPlan plan) {
    if (plan.step() <= processedStep) {
      throw new IllegalStateException("step " + plan.step() + " was given back before");
    }
    processedStep = plan.step();
    for (Sequence s = fenced.first(); s != null && s.fencedByStep <= processedStep; s = fenced.first()) {
      fenced.remove(s);
      blocks.release(s.blocks());
    }
  }

  private void end(Sequence s, FinishReason reason, long nanos) {
    planner.remove(s);
    blocks.release(s.blocks());
    finish(s, reason, nanos);
  }

  private void finish(Sequence s, FinishReason reason, long nanos) {
    s.state = SequenceState.FINISHED;
    s.finishReason = reason;
    listener.finished(s, reason, nanos);
  }
}
