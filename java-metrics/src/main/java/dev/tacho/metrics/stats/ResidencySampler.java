package dev.tacho.metrics.stats;

import java.util.Arrays;
import java.util.function.DoubleSupplier;

/**
 * Samples how long KV blocks stay: when each was allocated, used and evicted. Belongs to the thread that owns the
 * blocks; allocates nothing once it has seen the most evictions between two drains.
 *
 * <p>A use is a hit of the block by another request's prefix; allocation is none, and freeing a block is no eviction.
 */
public final class ResidencySampler {
  private static final int USES = 4;
  private static final int GAPS = USES - 1;
  private static final int WORDS = 2 + GAPS;
  private static final long NONE = Long.MIN_VALUE;
  private static final long NO_GAP = -1;

  /** Takes evictions. Must not allocate. */
  @FunctionalInterface
  public interface Evictions {
    /**
     * The contents of a block gave way to others.
     *
     * @param lifetimeNanos since it was allocated
     * @param idleNanos since it was last used, or allocated if it never was
     * @param firstGapNanos between the oldest use remembered and the next, -1 if there were not two
     * @param secondGapNanos between that one and the next, or -1
     * @param thirdGapNanos between that one and the last, or -1
     */
    void evicted(long lifetimeNanos, long idleNanos, long firstGapNanos, long secondGapNanos, long thirdGapNanos);
  }

  private final double rate;
  private final DoubleSupplier draws;
  private final long[] births;
  private final long[] lastUses;
  private final long[] uses;
  private final int[] useCounts;
  private int tracked;
  private long[] pending = new long[WORDS * 16];
  private int pendingCount;

  /**
   * A sampler.
   *
   * @param blocks how many there are; their numbers are below
   * @param rate share of the allocations that are followed, in (0, 1]
   * @param draws numbers in [0, 1), one for each allocation
   */
  public ResidencySampler(int blocks, double rate, DoubleSupplier draws) {
    if (!(rate > 0 && rate <= 1)) {
      throw new IllegalArgumentException("kvCacheMetricsSample " + rate + ": must be in (0, 1]");
    }
    this.rate = rate;
    this.draws = draws;
    births = new long[blocks];
    Arrays.fill(births, NONE);
    lastUses = new long[blocks];
    uses = new long[Math.multiplyExact(blocks, USES)];
    useCounts = new int[blocks];
  }

  /** A block was allocated; if it is sampled, it is followed anew. */
  public void allocated(int block, long nanos) {
    if (draws.getAsDouble() < rate) {
      if (births[block] == NONE) {
        tracked++;
      }
      births[block] = nanos;
      lastUses[block] = nanos;
      useCounts[block] = 0;
    }
  }

  /** A block was used by another request. */
  public void used(int block, long nanos) {
    if (isTracked(block)) {
      lastUses[block] = nanos;
      uses[block * USES + useCounts[block] % USES] = nanos;
      if (++useCounts[block] == 2 * USES) {
        // As many are remembered as before, in the same places: the count of a block used for ever never overflows.
        useCounts[block] = USES;
      }
    }
  }

  /** A block was evicted. */
  public void evicted(int block, long nanos) {
    if (!isTracked(block)) {
      return;
    }
    if ((pendingCount + 1) * WORDS > pending.length) {
      pending = Arrays.copyOf(pending, pending.length * 2);
    }
    int at = pendingCount++ * WORDS;
    pending[at] = nanos - births[block];
    pending[at + 1] = nanos - lastUses[block];
    int known = Math.min(USES, useCounts[block]);
    for (int gap = 0; gap < GAPS; gap++) {
      pending[at + 2 + gap] = gap + 1 < known ? use(block, known, gap + 1) - use(block, known, gap) : NO_GAP;
    }
    births[block] = NONE;
    tracked--;
  }

  /** The cache was emptied: nothing is followed any more, and what was not drained is dropped. */
  public void reset() {
    Arrays.fill(births, NONE);
    tracked = 0;
    pendingCount = 0;
  }

  /** Hands over the evictions since the last time, oldest first. */
  public void drainTo(Evictions to) {
    for (int at = 0; at < pendingCount * WORDS; at += WORDS) {
      to.evicted(pending[at], pending[at + 1], pending[at + 2], pending[at + 3], pending[at + 4]);
    }
    pendingCount = 0;
  }

  /** Blocks that are followed. */
  public int tracked() {
    return tracked;
  }

  /** Evictions that were not drained yet. */
  public int pending() {
    return pendingCount;
  }

  /** True if a block is followed. */
  public boolean isTracked(int block) {
    return births[block] != NONE;
  }

  private long use(int block, int known, int index) {
    return uses[block * USES + (useCounts[block] - known + index) % USES];
  }
}
