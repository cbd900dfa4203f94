package dev.tacho.metrics.stats;

import dev.tacho.metrics.event.EventWriter;
import java.util.Arrays;
import java.util.function.DoubleSupplier;

/**
 * Samples how long KV blocks stay: when each was allocated, used and evicted. Belongs to the thread that owns the
 * blocks; allocates nothing once it has seen the largest block number and the most evictions between two drains.
 *
 * <p>A use is a hit of the block by another request's prefix; allocation is none, and freeing a block is no eviction.
 */
public final class ResidencySampler {
  private static final int USES = 4;
  private static final int GAPS = USES - 1;
  private static final int WORDS = 2 + GAPS;
  private static final long NONE = Long.MIN_VALUE;
  private static final double NANOS = 1e9;

  private final double rate;
  private final DoubleSupplier draws;
  private long[] births = new long[0];
  private long[] lastUses = new long[0];
  private long[] uses = new long[0];
  private int[] useCounts = new int[0];
  private int tracked;
  private long[] pending = new long[WORDS * 16];
  private int pendingCount;

  /**
   * A sampler.
   *
   * @param rate share of the allocations that are followed, in (0, 1]
   * @param draws numbers in [0, 1), one for each allocation
   */
  public ResidencySampler(double rate, DoubleSupplier draws) {
    if (!(rate > 0 && rate <= 1)) {
      throw new IllegalArgumentException("kvCacheMetricsSample " + rate + ": must be in (0, 1]");
    }
    this.rate = rate;
    this.draws = draws;
  }

  /** A block was allocated; if it is sampled, it is followed anew. */
  public void allocated(int block, long nanos) {
    if (draws.getAsDouble() < rate) {
      room(block);
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
      useCounts[block]++;
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
      pending[at + 2 + gap] = gap + 1 < known ? use(block, known, gap + 1) - use(block, known, gap) : NONE;
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

  /** Hands over the evictions since the last time. */
  public void drainTo(ResidencyStats stats) {
    for (int i = 0; i < pendingCount; i++) {
      int at = i * WORDS;
      stats.add(pending[at] / NANOS, pending[at + 1] / NANOS);
      for (int gap = 0; gap < GAPS; gap++) {
        if (pending[at + 2 + gap] != NONE) {
          stats.addReuseGap(pending[at + 2 + gap] / NANOS);
        }
      }
    }
    pendingCount = 0;
  }

  /** Writes the evictions since the last time as events, before the snapshot that is to show them. */
  public void drainTo(EventWriter events) {
    for (int i = 0; i < pendingCount; i++) {
      int at = i * WORDS;
      events.evicted(pending[at], pending[at + 1], Math.max(-1, pending[at + 2]), Math.max(-1, pending[at + 3]),
          Math.max(-1, pending[at + 4]));
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
    return block < births.length && births[block] != NONE;
  }

  private long use(int block, int known, int index) {
    return uses[block * USES + (useCounts[block] - known + index) % USES];
  }

  private void room(int block) {
    int old = births.length;
    if (block >= old) {
      int size = Math.max(block + 1, old * 2);
      births = Arrays.copyOf(births, size);
      Arrays.fill(births, old, size, NONE);
      lastUses = Arrays.copyOf(lastUses, size);
      useCounts = Arrays.copyOf(useCounts, size);
      uses = Arrays.copyOf(uses, size * USES);
    }
  }
}
