package dev.tacho.engine.scheduler;

import dev.tacho.engine.kv.BlockAllocator;
import dev.tacho.engine.kv.BlockHasher;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.SequenceBlocks;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Forms the plan of a step: running sequences first, in the order of their admission, then waiting ones. Owns who runs
 * and who waits; the {@link Scheduler} adds sequences and takes them away. Engine thread only.
 */
final class StepPlanner {
  // Room that a sequence gets for its output when it begins to run, so that most never copy their tokens again.
  private static final int RESERVED_TOKENS = 4096;

  // With fewer running sequences what a step reads stays in a CPU's own caches, and reading ahead gains nothing.
  private static final int FETCH_FROM = 512;
  // Places to read ahead: what is read of them has to stay in the nearest cache until they are planned.
  private static final int FETCHED = 128;

  private final SchedulerConfig config;
  private final KvBlockPool pool;
  private final BlockAllocator blocks;
  private final @Nullable BlockHasher hasher;
  private final SchedulerListener listener;
  private final RunningSequences running = new RunningSequences();
  private final WaitingQueue waiting;
  private final AdapterBudget adapters;
  private final PrefillCadence cadence;
  private PauseState pause = PauseState.UNPAUSED;
  private int numDeferred;
  // Those of sequences that are read ahead; between two calls it keeps none of them.
  private final SequenceBlocks[] ending = new SequenceBlocks[FETCHED];
  // Without a meaning: as it is kept, the reads are.
  @SuppressWarnings("unused")
  private int fetched;

  // Of the step being planned.
  private int budget;
  private boolean preempted;
  private boolean computesPrompt;
  private boolean continuesPrompt;

  /**
   * @param hasher of full blocks, for the prefix cache; null without one
   */
  StepPlanner(
      SchedulerConfig config,
      KvBlockPool pool,
      BlockAllocator blocks,
      @Nullable BlockHasher hasher,
      SchedulerListener listener) {
    this.config = config;
    this.pool = pool;
    this.blocks = blocks;
    this.hasher = hasher;
    this.listener = listener;
    waiting = config.policy().newQueue();
    adapters = new AdapterBudget(config.maxLoras());
    cadence = new PrefillCadence(config.prefillScheduleInterval());
  }

  RunningSequences running() {
    return running;
  }

  WaitingQueue waiting() {
    return waiting;
  }

  int numDeferred() {
    return numDeferred;
  }

  PauseState pause() {
    return pause;
  }

  void setPause(PauseState state) {
    pause = state;
  }

  /** Takes a sequence out of the running or the waiting ones. */
  void remove(Sequence s) {
    if (s.state == SequenceState.RUNNING) {
      running.remove(s);
      adapters.stopped(s);
    } else {
      waiting.remove(s);
      setDeferred(s, false);
    }
  }

  /** Sends a running sequence back to the queue without its blocks. Its tokens stay. */
  void preempt(Sequence s, long nanos) {
    remove(s);
    blocks.release(s.blocks());
    SequenceProgress progress = s.progress();
    progress.staleTokens = progress.inFlightTokens;
    progress.computedTokens = 0;
    progress.placeholders = 0;
    progress.numDrafts = 0;
    s.numPreemptions++;
    s.state = SequenceState.PREEMPTED;
    s.waitingSinceNanos = nanos;
    waiting.addPreempted(s);
    listener.preempted(s, nanos);
  }

  /** Fills a plan for a step. */
  void plan(StepPlan plan, long step, long nanos) {
    running.close();
    plan.reset(step, config.numSpeculativeTokens(), running);
    budget = pause == PauseState.PAUSED_ALL ? 0 : config.maxNumScheduledTokens();
    preempted = false;
    computesPrompt = false;
    continuesPrompt = false;
    int threshold = prefillThreshold();
    cadence.begin(running);
    planRunning(plan, threshold, nanos);
    if (!preempted && pause == PauseState.UNPAUSED) {
      planWaiting(plan, threshold, nanos);
      waiting.endPass();
      cadence.admissionsDone(waiting.size() - numDeferred);
    }
    cadence.end(plan.numTokens() > 0, computesPrompt);
  }

  /** Tokens of one sequence in this step at most. A lone sequence gets the whole budget. */
  private int prefillThreshold() {
    int unfinished = running.size() + waiting.size();
    int threshold = config.longPrefillTokenThreshold();
    if (threshold == 0 || unfinished <= 1) {
      return Integer.MAX_VALUE;
    }
    return config.adaptiveLongPrefillThreshold()
        ? Math.max(threshold, config.maxNumBatchedTokens() / unfinished)
        : threshold;
  }

  private void planRunning(StepPlan plan, int threshold, long nanos) {
    boolean fetches = running.size() >= FETCH_FROM;
    for (int i = 0; i < running.end() && budget > 0; i++) {
      if (fetches && i % FETCHED == 0) {
        fetch(i, Math.min(i + FETCHED, running.end()));
      }
      SequenceProgress s = running.at(i);
      int n = s == null ? 0 : wanted(s, threshold);
      if (s == null || n <= 0) {
        continue;
      }
      if (s.computedTokens + n <= s.quietUntil || makeRoom(s, n, plan, nanos)) {
        continuesPrompt |= s.midPrompt;
        record(plan, s, n);
      } else if (config.policy() == SchedulingPolicy.FCFS) {
        return;
      }
    }
    computesPrompt = continuesPrompt;
  }

  /** Has the memory come that is needed for sequences whose blocks end, of the places {@code from} to {@code to}. */
  private void fetch(int from, int to) {
    int count = 0;
    for (int i = from; i < to; i++) {
      SequenceProgress s = running.at(i);
      if (s != null && s.computedTokens >= s.quietUntil) {
        ending[count++] = s.blocks;
      }
    }
    fetched = blocks.fetch(ending, count);
    Arrays.fill(ending, 0, count, SequenceProgress.NO_BLOCKS);
  }

  /** Tokens that a running sequence could compute in this step, blocks aside. */
  private int wanted(SequenceProgress s, int threshold) {
    if (s.placeholders > 0 && s.computedTokens + 2 - s.placeholders >= s.fullLength) {
      // The step in flight surely gives its last token.
      return 0;
    }
    if (s.midPrompt && cadence.holds()) {
      return 0;
    }
    int n = Math.min(s.length + s.numDrafts + s.placeholders - s.computedTokens, threshold);
    return Math.min(Math.min(n, budget), config.maxModelLen() - s.computedTokens - 1);
  }

  /**
   * Gets the blocks for a running sequence's next tokens, preempting others and in the end itself.
   *
   * @return false if it was preempted itself
   */
  private boolean makeRoom(SequenceProgress progress, int n, StepPlan plan, long nanos) {
    if (hasher != null) {
      progress.hashBlocks(hasher);
    }
    int computed = progress.computedTokens;
    SequenceBlocks own = progress.blocks;
    while (!blocks.extend(own, computed, progress.inFlightTokens, n, progress.promptLength)) {
      Sequence s = progress.owner();
      Sequence victim = config.policy().victim(running);
      if (victim == null) {
        throw new IllegalStateException(s + " wants blocks but does not run");
      }
      // Only one that stands before it can be in the plan.
      SequenceProgress lost = victim.progress();
      int tokens = lost.place < progress.place ? plan.remove(lost.place) : 0;
      if (tokens > 0) {
        budget += tokens;
        lost.inFlightTokens -= tokens;
        if (config.guardBlocks()) {
          // What this step would have put into its blocks is not computed, so nobody may find it there.
          blocks.forget(victim.blocks(), (lost.computedTokens - tokens) / pool.blockTokens());
        }
      }
      preempt(victim, nanos);
      preempted = true;
      if (victim == s) {
        return false;
      }
    }
    progress.quietUntil = blocks.quietUntil(own);
    return true;
  }

  private void planWaiting(StepPlan plan, int threshold, long nanos) {
    boolean decodesRun = plan.numSequences() > 0;
    while (budget > 0 && running.size() < config.maxNumActiveSeqs()) {
      Sequence s = waiting.peek();
      if (s == null) {
        return;
      }
      if (s.state == SequenceState.BLOCKED && s.unblocked) {
        s.state = SequenceState.WAITING;
      }
      if (s.state == SequenceState.BLOCKED || !adapters.admits(s)) {
        setDeferred(s, true);
        waiting.passOver(s);
        continue;
      }
      int hits = lookup(s);
      int left = s.length() - hits;
      if (cadence.holds() && left > 1) {
        return;
      }
      int n = left;
      if (isPadded(left, hits, decodesRun)) {
        n = 1 + config.numSpeculativeTokens();
        if (n > budget) {
          return;
        }
      }
      n = Math.min(n, threshold);
      if (!config.enableChunkedPrefill() && n > budget) {
        return;
      }
      n = Math.min(n, budget);
      if (!blocks.admit(s.blocks(), n, s.length(), s.promptLength(), running.size() > 0)) {
        return;
      }
      admit(s, hits, nanos);
      computesPrompt |= left > 1;
      if (n > left) {
        s.padDrafts(n - left);
      }
      record(plan, s.progress(), n);
    }
  }

  private int lookup(Sequence s) {
    int hits = 0;
    if (hasher != null) {
      s.progress().hashBlocks(hasher);
    }
    if (s.prefixLookup()) {
      hits = blocks.lookup(s.blocks(), s.length());
    } else {
      blocks.skipLookup();
    }
    if (s.state != SequenceState.PREEMPTED) {
      s.cachedTokens = hits;
    }
    return hits;
  }

  /** True if an admission of one token is filled up with drafts, so that a batch of decodes stays uniform. */
  private boolean isPadded(int left, int hits, boolean decodesRun) {
    int k = config.numSpeculativeTokens();
    return k > 0
        && left == 1
        && !continuesPrompt
        && (decodesRun || hits > 0)
        && hits + 1 + k + 1 <= config.maxModelLen();
  }

  private void admit(Sequence s, int hits, long nanos) {
    if (s.prefixLookup() && pool.prefixCaching()) {
      listener.prefixCacheQueried(s, s.length(), hits, s.state == SequenceState.PREEMPTED);
    }
    remove(s);
    s.waitedBeforeNanos = s.waitedNanos(nanos);
    SequenceProgress progress = s.progress();
    progress.reserve(Math.min(progress.fullLength, progress.promptLength + RESERVED_TOKENS), pool.blockTokens());
    running.add(s);
    adapters.started(s);
    s.state = SequenceState.RUNNING;
    s.progress().computedTokens = hits;
    s.progress().quietUntil = blocks.quietUntil(s.blocks());
    listener.scheduled(s, nanos);
  }

  /** Puts a sequence into the plan and moves it on, before the step has run: what it computes counts as computed. */
  private void record(StepPlan plan, SequenceProgress s, int n) {
    int start = s.computedTokens;
    int end = start + n;
    int known = s.length + s.placeholders;
    boolean samples = end >= known;
    int drafts = Math.max(0, end - known);
    plan.add(s, n, start, samples, drafts);
    budget -= n;
    s.computedTokens = end;
    s.inFlightTokens += n;
    s.midPrompt = !samples;
    s.numDrafts = 0;
    if (samples && config.asyncScheduling()) {
      s.placeholders += 1 + drafts;
      if (config.numSpeculativeTokens() > 0) {
        s.owner().padDrafts(config.numSpeculativeTokens());
      }
    }
  }

  /** Puts a new sequence into the queue. */
  void add(Sequence s, long nanos) {
    s.waitingSinceNanos = nanos;
    s.state = s.arrivesBlocked() ? SequenceState.BLOCKED : SequenceState.WAITING;
    setDeferred(s, s.arrivesBlocked());
    waiting.add(s);
  }

  private void setDeferred(Sequence s, boolean deferred) {
    if (s.deferred != deferred) {
      s.deferred = deferred;
      numDeferred += deferred ? 1 : -1;
    }
  }
}
