package dev.tacho.engine.kv;

import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Watches a sample of the KV blocks: how long contents stayed before their block was handed out again, how long they
 * had been idle then, and the times between their reuses. Chosen anew each time a block is handed out. Engine thread
 * only; allocates nothing after construction.
 */
public final class BlockResidency {
  /** Reuses of a block that are remembered: the latest ones. */
  private static final int REMEMBERED_REUSES = 4;

  private static final long NOT_SAMPLED = Long.MIN_VALUE;

  /** Learns of evictions, at the moment of each. Must not allocate. */
  public interface Listener {
    /**
     * The contents of a sampled block gave way to others.
     *
     * @param lifetimeNanos since the block had been handed out
     * @param idleNanos since it was last handed out or found in the cache
     * @param gapsNanos times between the latest times that it was found; reused for the next eviction
     * @param numGaps how many of them count
     */
    void evicted(long lifetimeNanos, long idleNanos, long[] gapsNanos, int numGaps);
  }

  private final double sampleRate;
  private final SplittableRandom random;
  private final Listener listener;
  private final long[] births;
  private final long[] lastUses;
  private final long[] reuses;
  private final int[] numReuses;
  private final long[] gaps = new long[REMEMBERED_REUSES - 1];
  private long nanos;

  /**
   * @param numBlocks blocks of the pool
   * @param sampleRate share of blocks to watch, in (0, 1]
   * @param seed of the choice
   * @param listener learns of evictions
   */
  public BlockResidency(int numBlocks, double sampleRate, long seed, Listener listener) {
    if (!(sampleRate > 0 && sampleRate <= 1)) {
      throw new IllegalArgumentException("kv_cache_metrics_sample must be in (0, 1], is " + sampleRate);
    }
    this.sampleRate = sampleRate;
    this.random = new SplittableRandom(seed);
    this.listener = listener;
    births = new long[numBlocks];
    lastUses = new long[numBlocks];
    reuses = new long[numBlocks * REMEMBERED_REUSES];
    numReuses = new int[numBlocks];
    reset();
  }

  /** Sets the time of what follows. */
  void setNanos(long now) {
    nanos = now;
  }

  void allocated(int block) {
    births[block] = sampleRate >= 1 || random.nextDouble() < sampleRate ? nanos : NOT_SAMPLED;
    lastUses[block] = nanos;
    numReuses[block] = 0;
  }

  void reused(int block) {
    lastUses[block] = nanos;
    reuses[block * REMEMBERED_REUSES + numReuses[block] % REMEMBERED_REUSES] = nanos;
    numReuses[block]++;
    if (numReuses[block] == 2 * REMEMBERED_REUSES) {
      // As many are remembered as before, in the same places; a block that is used for ever never counts too far.
      numReuses[block] = REMEMBERED_REUSES;
    }
  }

  void evicted(int block) {
    if (births[block] == NOT_SAMPLED) {
      return;
    }
    int remembered = Math.min(numReuses[block], REMEMBERED_REUSES);
    int numGaps = Math.max(0, remembered - 1);
    int first = numReuses[block] - remembered;
    for (int i = 0; i < numGaps; i++) {
      gaps[i] = reuse(block, first + i + 1) - reuse(block, first + i);
    }
    listener.evicted(nanos - births[block], nanos - lastUses[block], gaps, numGaps);
    births[block] = NOT_SAMPLED;
  }

  /** Forgets all blocks watched. */
  void reset() {
    Arrays.fill(births, NOT_SAMPLED);
  }

  private long reuse(int block, int i) {
    return reuses[block * REMEMBERED_REUSES + i % REMEMBERED_REUSES];
  }
}
