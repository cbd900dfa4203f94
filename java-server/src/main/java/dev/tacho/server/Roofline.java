package dev.tacho.server;

import dev.tacho.engine.OperatorWork;
import dev.tacho.metrics.perf.DevicePeaks;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How near the operators of a test came to what the machine can do. An operator can be no faster than its operations
 * allow at the peak of matrix products, nor than its bytes at the peak of memory; the nearer of both limits counts.
 * Bytes are counted as if from memory: an operator whose operands lie in a cache may be above the limit. Rates are
 * those of all workers together while they are at it; waiting for each other is left out.
 *
 * @param test {@code prefill}, {@code decode} or {@code batched_decode}
 * @param batch sequences side by side
 * @param threads workers of an engine
 * @param elapsedNanos of the whole test, with what workers wait for each other and do between operators
 * @param peaks of the machine; null if unknown
 * @param rows the operators that ran, that with most time first
 */
record Roofline(
    String test, int batch, int threads, long elapsedNanos, @Nullable DevicePeaks peaks, List<Row> rows) {
  /** Of the units, and nanoseconds of a second. */
  private static final double GIGA = 1e9;

  /** Copies the list. */
  Roofline {
    rows = List.copyOf(rows);
  }

  /**
   * An operator.
   *
   * @param work done in the test
   * @param timeShare of the time of all operators
   * @param gbPerSecond bytes moved, 10^9 a second; 0 if it took no time
   * @param gflops operations, 10^9 a second; 0 if it took no time
   * @param shareOfPeak of the nearer limit, 1 where it is reached; NaN without peaks or time
   * @param boundByMemory the nearer limit is that of memory
   */
  record Row(
      OperatorWork work,
      double timeShare,
      double gbPerSecond,
      double gflops,
      double shareOfPeak,
      boolean boundByMemory) {}

  /**
   * What was done between two readings of {@link dev.tacho.engine.Engine#operatorWork}.
   *
   * @param before the operators in some order
   * @param after the same in the same order
   */
  static Roofline between(
      String test,
      int batch,
      int threads,
      long elapsedNanos,
      @Nullable DevicePeaks peaks,
      List<OperatorWork> before,
      List<OperatorWork> after) {
    List<OperatorWork> done = new ArrayList<>();
    long nanos = 0;
    for (int i = 0; i < after.size(); i++) {
      OperatorWork work = difference(before.get(i), after.get(i));
      nanos += work.nanos();
      if (work.calls() > 0) {
        done.add(work);
      }
    }
    done.sort(Comparator.comparingLong(OperatorWork::nanos).reversed());
    List<Row> rows = new ArrayList<>();
    for (OperatorWork work : done) {
      rows.add(row(work, nanos, threads, peaks));
    }
    return new Roofline(test, batch, threads, elapsedNanos, peaks, rows);
  }

  private static OperatorWork difference(OperatorWork before, OperatorWork after) {
    return new OperatorWork(
        after.operator(),
        after.calls() - before.calls(),
        after.nanos() - before.nanos(),
        after.bytes() - before.bytes(),
        after.flops() - before.flops());
  }

  private static Row row(OperatorWork work, long allNanos, int threads, @Nullable DevicePeaks peaks) {
    if (work.nanos() == 0) {
      return new Row(work, 0, 0, 0, Double.NaN, true);
    }
    double timeShare = (double) work.nanos() / allNanos;
    double gbPerSecond = (double) work.bytes() * threads / work.nanos();
    double gflops = (double) work.flops() * threads / work.nanos();
    if (peaks == null) {
      return new Row(work, timeShare, gbPerSecond, gflops, Double.NaN, true);
    }
    double ofMemory = gbPerSecond * GIGA / peaks.bytesPerSecond();
    double ofProducts = gflops * GIGA / peaks.flopsPerSecond();
    return new Row(work, timeShare, gbPerSecond, gflops, Math.max(ofMemory, ofProducts), ofMemory >= ofProducts);
  }

  /** Seconds of the whole test. */
  double elapsedSeconds() {
    return elapsedNanos / GIGA;
  }

  /** Seconds of a worker in all operators together. */
  double operatorSeconds() {
    return rows.stream().mapToLong(row -> row.work().nanos()).sum() / GIGA / threads;
  }
}
