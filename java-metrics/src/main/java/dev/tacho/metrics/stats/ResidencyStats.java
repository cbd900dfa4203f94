package dev.tacho.metrics.stats;

/** How long sampled KV blocks stayed, in seconds, of those evicted since the snapshot before. One thread. */
public final class ResidencyStats {
  private final Samples lifetimes = new Samples();
  private final Samples idleTimes = new Samples();
  private final Samples reuseGaps = new Samples();

  /** Adds a block: from allocation to eviction, and from its last use to eviction. */
  public void add(double lifetimeSeconds, double idleSeconds) {
    lifetimes.add(lifetimeSeconds);
    idleTimes.add(idleSeconds);
  }

  /** Adds the time between two uses of a block. */
  public void addReuseGap(double seconds) {
    reuseGaps.add(seconds);
  }

  /** Adds the blocks of another. */
  void add(ResidencyStats other) {
    lifetimes.add(other.lifetimes);
    idleTimes.add(other.idleTimes);
    reuseGaps.add(other.reuseGaps);
  }

  /** Forgets everything. */
  public void clear() {
    lifetimes.clear();
    idleTimes.clear();
    reuseGaps.clear();
  }

  /** Allocation to eviction, one for each block. */
  public Samples lifetimes() {
    return lifetimes;
  }

  /** Last use to eviction, one for each block. */
  public Samples idleTimes() {
    return idleTimes;
  }

  /** Times between neighbouring uses, up to three a block. */
  public Samples reuseGaps() {
    return reuseGaps;
  }
}
