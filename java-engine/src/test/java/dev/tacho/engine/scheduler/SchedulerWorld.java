package dev.tacho.engine.scheduler;

import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvGroup;
import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.metrics.event.FinishReason;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A scheduler with a scripted model: token j of request i is a function of both, time is a counter. */
final class SchedulerWorld {
  static final int EOS = 2;

  final KvBlockPool pool;
  final EventRecount listener = new EventRecount();
  final Scheduler scheduler;
  final StepResult result = new StepResult();
  final StepOutputs outputs = new StepOutputs();
  private final @Nullable KvModel kv;
  private final Map<Long, int[]> accepted = new HashMap<>();
  // Decides how many drafts whose ids only the runner knows were right.
  final Random random = new Random(7);
  long nanos;

  SchedulerWorld(SchedulerConfig.Builder config, int numBlocks, int blockTokens, boolean prefixCaching) {
    this(config, new KvBlockPool(numBlocks, blockTokens, prefixCaching), List.of(KvGroup.full()));
  }

  SchedulerWorld(SchedulerConfig.Builder config, KvBlockPool pool, List<KvGroup> groups) {
    this.pool = pool;
    scheduler = new Scheduler(config.build(), pool, groups, listener);
    // Asynchronous speculation plans as if all drafts were right: only the runner knows the positions then.
    SchedulerConfig c = scheduler.config();
    boolean positionsKnown = !c.asyncScheduling() || c.numSpeculativeTokens() == 0;
    kv = c.guardBlocks() && positionsKnown ? new KvModel(pool, groups) : null;
  }

  /** A request whose prompt no other has. */
  static Sequence.Builder sequence(String id, int prompt, int maxTokens) {
    int[] tokens = new int[prompt];
    for (int i = 0; i < prompt; i++) {
      tokens[i] = 1000 + Math.floorMod(id.hashCode() * 31 + i, 10_000);
    }
    return sequence(id, tokens, maxTokens);
  }

  static Sequence.Builder sequence(String id, int[] prompt, int maxTokens) {
    SamplingParams params = SamplingParams.builder().maxTokens(maxTokens).build();
    return Sequence.builder(id, prompt, new SamplerState(params, Set.of(EOS), 0));
  }

  Sequence add(Sequence.Builder builder) {
    Sequence s = builder.build();
    scheduler.add(s, ++nanos);
    return s;
  }

  /** Plans a step and executes it. */
  StepPlan schedule() {
    StepPlan plan = scheduler.schedule(++nanos);
    int[] right = new int[plan.numSequences()];
    for (int i = 0; i < right.length; i++) {
      right[i] = accepted(plan, i);
    }
    accepted.put(plan.step(), right);
    if (kv != null) {
      kv.execute(plan, right);
    }
    return plan;
  }

  /** The step failed. */
  void fail(StepPlan plan) {
    if (kv != null) {
      kv.fail(plan);
    }
    scheduler.fail(plan, ++nanos, outputs);
  }

  void update(StepPlan plan) {
    result.reset();
    int[] right = Objects.requireNonNull(accepted.remove(plan.step()));
    for (int i = 0; i < plan.numSequences(); i++) {
      result.nextSequence();
      if (plan.samples(i)) {
        Sequence s = plan.sequence(i);
        for (int j = 0; j <= right[i]; j++) {
          result.addToken(token(s, s.length() + j), null);
        }
      }
    }
    scheduler.update(plan, result, ++nanos, outputs);
  }

  /** One synchronous step; gives its tokens. */
  int step() {
    StepPlan plan = schedule();
    update(plan);
    return plan.numTokens();
  }

  boolean abort(Sequence s) {
    return scheduler.abort(s, FinishReason.ABORT, ++nanos);
  }

  private int accepted(StepPlan plan, int i) {
    Sequence s = plan.sequence(i);
    if (scheduler.config().asyncScheduling()) {
      return plan.numDrafts(i) == 0 ? 0 : random.nextInt(plan.numDrafts(i) + 1);
    }
    int accepted = 0;
    while (accepted < plan.numDrafts(i) && plan.draft(i, accepted) == token(s, s.length() + accepted)) {
      accepted++;
    }
    return accepted;
  }

  /** Proposes drafts for the next step of each sequence that got a token, some of them right. */
  void propose() {
    int[] drafts = new int[scheduler.config().numSpeculativeTokens()];
    for (int i = 0; i < outputs.size(); i++) {
      Sequence s = outputs.sequence(i);
      int count = random.nextInt(drafts.length + 1);
      for (int j = 0; j < count; j++) {
        drafts[j] = random.nextInt(4) == 0 ? 9 : token(s, s.length() + j);
      }
      scheduler.setDrafts(s, drafts, count);
    }
  }

  /** The model: depends on the request and the position alone, sometimes ends the text. */
  static int token(Sequence s, int position) {
    int mixed = (s.requestId().hashCode() * 31 + position) * 0x9E3779B1;
    return (mixed >>> 8) % 97 == 0 ? EOS : 10 + (mixed >>> 20);
  }
}
