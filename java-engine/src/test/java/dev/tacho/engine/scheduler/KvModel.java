package dev.tacho.engine.scheduler;

import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvGroup;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What a KV cache would hold: for each token slot a hash of the sequence up to that position. A step first writes its
 * tokens and then reads everything before them, as a runner does, so a block that was never computed, or that somebody
 * else has overwritten, is noticed.
 */
final class KvModel {
  private static final long NEVER_WRITTEN = 0;

  private final int blockTokens;
  private final List<KvGroup> groups;
  private final long[] slots;
  private final Map<Long, int[]> written = new HashMap<>();

  KvModel(KvBlockPool pool, List<KvGroup> groups) {
    this.groups = groups;
    blockTokens = pool.blockTokens();
    slots = new long[pool.numBlocks() * blockTokens];
  }

  /** Executes a step; {@code accepted[i]} drafts of sequence i are right, so their keys are those of its text. */
  void execute(StepPlan plan, int[] accepted) {
    int[] all = new int[plan.numTokens() * groups.size()];
    int count = 0;
    for (int i = 0; i < plan.numSequences(); i++) {
      Sequence s = plan.sequence(i);
      int end = plan.startPosition(i) + plan.scheduledTokens(i);
      int right = end - plan.numDrafts(i) + accepted[i];
      for (int g = 0; g < groups.size(); g++) {
        for (int position = plan.startPosition(i); position < end; position++) {
          int slot = slot(s, g, position);
          slots[slot] = position < right ? hash(s, g, position) : NEVER_WRITTEN;
          all[count++] = slot;
        }
      }
    }
    written.put(plan.step(), all);
    for (int i = 0; i < plan.numSequences(); i++) {
      for (int g = 0; g < groups.size(); g++) {
        read(plan, i, g);
      }
    }
  }

  private void read(StepPlan plan, int i, int g) {
    Sequence s = plan.sequence(i);
    int window = groups.get(g).windowTokens();
    int first = window == 0 ? 0 : Math.max(0, plan.startPosition(i) - window + 1);
    int known = plan.startPosition(i) + plan.scheduledTokens(i) - plan.numDrafts(i);
    for (int position = first; position < known; position++) {
      if (slots[slot(s, g, position)] != hash(s, g, position)) {
        throw new AssertionError(
            "step " + plan.step() + ": " + s + " reads position " + position + ", which does not hold its keys");
      }
    }
  }

  /** The step failed: what it wrote is garbage. */
  void fail(StepPlan plan) {
    for (int slot : written.getOrDefault(plan.step(), new int[0])) {
      slots[slot] = NEVER_WRITTEN;
    }
  }

  private int slot(Sequence s, int g, int position) {
    int block = s.blocks().table(g).block(position / blockTokens);
    if (block == KvBlockPool.NULL_BLOCK) {
      throw new AssertionError("position " + position + " is in the null block");
    }
    return block * blockTokens + position % blockTokens;
  }

  private static long hash(Sequence s, int g, int position) {
    long hash = s.adapterName().hashCode() + (long) g;
    for (int i = 0; i <= position; i++) {
      hash = hash * 0x9E3779B97F4A7C15L + (i < s.length() ? s.token(i) : SchedulerWorld.token(s, i));
      hash ^= hash >>> 29;
    }
    return hash == NEVER_WRITTEN ? 1 : hash;
  }
}
