package dev.tacho.engine.kv;

import java.util.Arrays;
import java.util.List;

/**
 * Decides whether a sequence gets the blocks for its next tokens, and gives them: prefix lookup, full-sequence gate,
 * watermark, blocks that a window has left behind, publishing of full blocks. A refusal takes nothing. Engine thread
 * only; allocates nothing in steady state.
 *
 * <p>Blocks are published when their tokens are scheduled, before a kernel has written them: sequences of the same step
 * may find them. That is right as long as each layer writes the keys and values of all the step's tokens before it
 * reads any, and steps run in order.
 */
public final class BlockAllocator {
  private final KvBlockPool pool;
  private final KvGroup[] groups;
  private final int blockTokens;
  private final int maxModelLen;
  private final int maxTokensInFlight;
  private final int watermarkBlocks;
  private final boolean reserveFullSequence;
  private final int[][] hits;
  private int numHits;
  private int numFullHits;

  /**
   * @param pool the blocks
   * @param groups one or several; if one of several keeps all tokens, it is the first
   * @param maxModelLen tokens of a sequence at most
   * @param maxTokensInFlight tokens of one sequence in steps that have not ended, at most
   * @param watermark share of all blocks that admissions leave free while something runs, in [0, 1)
   * @param reserveFullSequence admit a sequence only if all its present tokens fit, not only the first chunk
   */
  public BlockAllocator(
      KvBlockPool pool,
      List<KvGroup> groups,
      int maxModelLen,
      int maxTokensInFlight,
      double watermark,
      boolean reserveFullSequence) {
    this.pool = pool;
    this.groups = groups.toArray(new KvGroup[0]);
    this.blockTokens = pool.blockTokens();
    this.maxModelLen = maxModelLen;
    this.maxTokensInFlight = maxTokensInFlight;
    this.watermarkBlocks = (int) (watermark * pool.numBlocks());
    this.reserveFullSequence = reserveFullSequence;
    this.hits = new int[this.groups.length][16];
  }

  /** Gives a new sequence its empty tables. */
  public void open(SequenceBlocks sequence) {
    sequence.open(groups.length);
  }

  /** Blocks that a sequence of so many tokens holds at the same time, at most. */
  public long blocksForSequence(int tokens) {
    long blocks = 0;
    for (KvGroup group : groups) {
      blocks += blocksHeld(group, tokens);
    }
    return blocks;
  }

  /**
   * Looks for the longest cached prefix that all groups have. At least one token is left to compute, since its logits
   * are needed. The blocks found are kept for {@link #admit} until the next lookup; they are not owned yet.
   *
   * @param sequence the sequence
   * @param length its tokens
   * @return tokens found, whole blocks
   */
  public int lookup(SequenceBlocks sequence, int length) {
    PrefixHashes hashes = sequence.hashes();
    int limit = Math.min(hashes.size(), (length - 1) / blockTokens);
    numFullHits = 0;
    int found = limit;
    int before;
    // A window group may find less than the group before it, and that one then has to do with less, too.
    do {
      before = found;
      for (int g = 0; g < groups.length; g++) {
        reserveHits(g, found);
        found = groups[g].slides() ? findInWindow(hashes, g, found) : findAll(hashes, g, found);
        if (g == 0 && numFullHits == 0) {
          numFullHits = found;
        }
      }
    } while (groups.length > 1 && found < before);
    numHits = found;
    return found * blockTokens;
  }

  private void reserveHits(int g, int count) {
    if (count > hits[g].length) {
      hits[g] = Arrays.copyOf(hits[g], Math.max(count, hits[g].length * 2));
    }
  }

  private int findAll(PrefixHashes hashes, int g, int limit) {
    for (int i = 0; i < limit; i++) {
      int block = pool.find(hashes.words(), i * BlockHasher.WORDS, g);
      if (block < 0) {
        return i;
      }
      hits[g][i] = block;
    }
    return limit;
  }

  /** The longest prefix whose last blocks, as far as a window reaches, are all there; else a run from block 0. */
  private int findInWindow(PrefixHashes hashes, int g, int limit) {
    int reach = groups[g].blocksInReach(blockTokens);
    int run = 0;
    for (int i = limit - 1; i >= 0; i--) {
      int block = pool.find(hashes.words(), i * BlockHasher.WORDS, g);
      hits[g][i] = Math.max(block, KvBlockPool.NULL_BLOCK);
      run = block < 0 ? 0 : run + 1;
      if (run > 0 && run >= reach) {
        Arrays.fill(hits[g], 0, i, KvBlockPool.NULL_BLOCK);
        return i + run;
      }
    }
    return run;
  }

  /** Forgets what the last lookup found: the next sequence is admitted without a prefix. */
  public void skipLookup() {
    numHits = 0;
    numFullHits = 0;
  }

  /**
   * Gives a waiting sequence the blocks found for it and those for its first {@code newTokens} tokens behind them.
   *
   * @param sequence without blocks
   * @param newTokens tokens to compute in the step
   * @param length all its tokens
   * @param promptLength those of its prompt
   * @param othersRun something is running, so that the watermark holds
   * @return false if they do not fit; nothing is changed then
   */
  public boolean admit(SequenceBlocks sequence, int newTokens, int length, int promptLength, boolean othersRun) {
    int evictable = 0;
    for (int g = 0; g < groups.length; g++) {
      for (int i = 0; i < numHits; i++) {
        evictable += pool.references(hits[g][i]) == 0 ? 1 : 0;
      }
    }
    int available = pool.numFree() - (othersRun ? watermarkBlocks : 0) - evictable;
    if (reserveFullSequence) {
      long whole = 0;
      for (KvGroup group : groups) {
        whole += Math.max(0, blocksHeld(group, length) - numHits);
      }
      if (whole > available) {
        return false;
      }
    }
    int computedAfter = numHits * blockTokens + newTokens;
    int fresh = blocksFor(computedAfter) - numHits;
    if ((long) fresh * groups.length > available) {
      return false;
    }
    for (int g = 0; g < groups.length; g++) {
      BlockTable table = sequence.table(g);
      for (int i = 0; i < numHits; i++) {
        if (hits[g][i] != KvBlockPool.NULL_BLOCK) {
          pool.touch(hits[g][i]);
        }
        table.append(hits[g][i]);
        table.considered(i, true);
      }
    }
    for (int g = 0; g < groups.length; g++) {
      pool.allocate(fresh, sequence.table(g));
    }
    sequence.setLostPrefixBlocks(numFullHits > numHits ? numFullHits : 0);
    publish(sequence, computedAfter, promptLength);
    return true;
  }

  /**
   * Gives a running sequence the blocks for its next tokens, and takes those that its windows have left behind, even if
   * it then gets none.
   *
   * @param sequence the sequence
   * @param computed its tokens computed so far, those of steps in flight included
   * @param inFlight of them in flight
   * @param newTokens tokens to compute in the step
   * @param promptLength tokens of its prompt
   * @return false if there are not enough
   */
  public boolean extend(SequenceBlocks sequence, int computed, int inFlight, int newTokens, int promptLength) {
    int fresh = 0;
    int needed = blocksFor(computed + newTokens);
    for (int g = 0; g < groups.length; g++) {
      BlockTable table = sequence.table(g);
      if (groups[g].slides()) {
        int outOfReach = groups[g].tokensOutOfReach(computed - inFlight) / blockTokens;
        pool.releaseFirst(table, Math.min(outOfReach, table.size()));
      }
      fresh += needed - table.size();
    }
    if (fresh > pool.numFree()) {
      return false;
    }
    for (int g = 0; g < groups.length && fresh > 0; g++) {
      pool.allocate(needed - sequence.table(g).size(), sequence.table(g));
    }
    publish(sequence, computed + newTokens, promptLength);
    return true;
  }

  /**
   * Computed tokens up to which a running sequence needs no block, gives none back and has none to publish: till then
   * neither {@link #extend} nor {@link #publish} changes anything.
   */
  public int quietUntil(SequenceBlocks sequence) {
    int quiet = Integer.MAX_VALUE;
    for (int g = 0; g < groups.length; g++) {
      if (groups[g].slides()) {
        return 0;
      }
      BlockTable table = sequence.table(g);
      quiet = Math.min(quiet, table.size() * blockTokens);
      if (pool.prefixCaching()) {
        quiet = Math.min(quiet, (table.published() + 1) * blockTokens - 1);
      }
    }
    return quiet;
  }

  /**
   * Reads what {@link #extend} will look at in sequences whose blocks end, one level of references after the other, so
   * that the memory of all of them is waited for at the same time. Changes nothing. Of several groups it reads the
   * first.
   *
   * @param sequences the first {@code count} of them are meant
   * @param count how many
   * @return a number without a meaning, which keeps the reads from being left out
   */
  public int fetch(SequenceBlocks[] sequences, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++) {
      sum += sequences[i].lostPrefixBlocks();
    }
    for (int i = 0; i < count; i++) {
      sum += sequences[i].hashes().size() + sequences[i].table(0).size();
    }
    for (int i = 0; i < count; i++) {
      sum += sequences[i].hashes().words().length + sequences[i].table(0).capacity();
    }
    for (int i = 0; i < count; i++) {
      PrefixHashes hashes = sequences[i].hashes();
      sum += hashes.word(hashes.size() - 1) + hashes.word(PrefixCache.runStart(hashes.size()));
      sum += sequences[i].table(0).newest();
    }
    for (int i = 0; i < count; i++) {
      sum += pool.fetch(sequences[i].hashes(), sequences[i].table(0).newest());
    }
    return sum;
  }

  /** Gives all blocks of a sequence back, group by group. */
  public void release(SequenceBlocks sequence) {
    for (int g = 0; g < groups.length; g++) {
      pool.release(sequence.table(g));
    }
  }

  /** Takes blocks from {@code firstBlock} on out of the prefix cache: their contents were never computed. */
  public void forget(SequenceBlocks sequence, int firstBlock) {
    for (int g = 0; g < groups.length; g++) {
      BlockTable table = sequence.table(g);
      for (int i = firstBlock; i < table.published(); i++) {
        pool.forget(table.block(i));
      }
      table.unpublish(firstBlock);
    }
  }

  /** Puts the blocks that the first {@code tokens} tokens fill into the prefix cache. */
  public void publish(SequenceBlocks sequence, int tokens, int promptLength) {
    if (!pool.prefixCaching()) {
      return;
    }
    PrefixHashes hashes = sequence.hashes();
    int full = Math.min(tokens / blockTokens, hashes.size());
    for (int g = 0; g < groups.length; g++) {
      BlockTable table = sequence.table(g);
      for (int i = table.published(); i < full; i++) {
        boolean publishes =
            table.block(i) != KvBlockPool.NULL_BLOCK
                && groups[g].publishes(i, promptLength, sequence.lostPrefixBlocks(), blockTokens);
        if (publishes) {
          pool.publish(table.block(i), hashes.words(), i * BlockHasher.WORDS, g);
        }
        table.considered(i, publishes);
      }
    }
  }

  /** Tokens up to the last block of the sequence that is in the prefix cache, in all groups. */
  public int publishedTokens(SequenceBlocks sequence) {
    int blocks = Integer.MAX_VALUE;
    for (int g = 0; g < groups.length; g++) {
      blocks = Math.min(blocks, sequence.table(g).publishedEnd());
    }
    return blocks * blockTokens;
  }

  private int blocksFor(int tokens) {
    return (Math.min(tokens, maxModelLen) + blockTokens - 1) / blockTokens;
  }

  /** Blocks of a group that a sequence of so many tokens holds at the same time, at most. */
  private int blocksHeld(KvGroup group, int tokens) {
    int all = blocksFor(tokens);
    if (!group.slides()) {
      return all;
    }
    // What the window reaches and what is in flight; one more, as neither begins with a block.
    long reach = Math.min((long) group.windowTokens() - 1 + maxTokensInFlight, maxModelLen);
    return Math.min(all, blocksFor((int) reach) + 1);
  }
}
