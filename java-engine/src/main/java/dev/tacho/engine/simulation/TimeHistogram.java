package dev.tacho.engine.simulation;

/**
 * Counts times so that percentiles are right to within 1 %: 128 buckets for each power of two. Records in a few
 * nanoseconds; allocates nothing after construction.
 */
final class TimeHistogram {
  private static final int BITS = 7;
  private static final int SUB_BUCKETS = 1 << BITS;

  private final long[] counts = new long[(Long.SIZE - BITS) * SUB_BUCKETS];
  private long count;
  private long max;
  private double sum;
  // Neighbours are often equal: those of one step that have run as long.
  private long pendingNanos;
  private long pending;

  /** Records a time, at least 0. */
  void record(long nanos) {
    if (nanos != pendingNanos) {
      flush();
      pendingNanos = nanos;
    }
    pending++;
  }

  private void flush() {
    if (pending > 0) {
      counts[bucket(pendingNanos)] += pending;
      count += pending;
      sum += (double) pendingNanos * pending;
      max = Math.max(max, pendingNanos);
      pending = 0;
    }
  }

  private static int bucket(long nanos) {
    if (nanos < SUB_BUCKETS) {
      return (int) nanos;
    }
    int shift = Long.SIZE - 1 - Long.numberOfLeadingZeros(nanos) - BITS;
    return (shift << BITS) + (int) (nanos >>> shift);
  }

  private static double middle(int bucket) {
    if (bucket < 2 * SUB_BUCKETS) {
      return bucket;
    }
    int shift = (bucket >>> BITS) - 1;
    long low = (long) (bucket - (shift << BITS)) << shift;
    return (double) low + ((1L << shift) - 1) / 2.0;
  }

  /** The times so far, in seconds. */
  SimulationReport.Times times() {
    flush();
    return new SimulationReport.Times(
        count,
        count == 0 ? 0 : sum / count / 1e9,
        percentile(0.5),
        percentile(0.9),
        percentile(0.95),
        percentile(0.99),
        max / 1e9);
  }

  private double percentile(double share) {
    long rank = (long) Math.ceil(share * count);
    long seen = 0;
    for (int i = 0; i < counts.length; i++) {
      seen += counts[i];
      if (seen >= rank && seen > 0) {
        return Math.min(middle(i), (double) max) / 1e9;
      }
    }
    return 0;
  }
}
