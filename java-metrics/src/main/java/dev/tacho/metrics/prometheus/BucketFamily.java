package dev.tacho.metrics.prometheus;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The sets of bucket bounds that histograms share, by the names under which an operator may replace them. */
public enum BucketFamily {
  /** Seconds between two outputs. */
  INTER_TOKEN_LATENCY(
      0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
  /** Tokens of a step. */
  ITERATION_TOKENS(1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
  /** Seconds that a KV block stays. */
  KV_CACHE_RESIDENCY(
      0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800),
  /** Seconds of a request or of a phase of it. */
  REQUEST_LATENCY(
      0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
      1920.0, 7680.0),
  /** Preemptions of a request. */
  REQUEST_NUM_PREEMPTIONS(1, 2, 3, 4, 5, 10, 20),
  /** Sequences of a request. */
  REQUEST_PARAMS_N(1, 2, 5, 10, 20),
  /** Tokens of a request: 1, 2, 5, 10, 20, ... up to the longest context. */
  REQUEST_TOKENS(),
  /** Seconds to the first token. */
  TIME_TO_FIRST_TOKEN(
      0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
      160.0, 640.0, 2560.0),
  /** Seconds of a KV transfer. */
  TRANSFER_TIME(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0),
  /** Seconds to post a KV transfer. */
  TRANSFER_POST_TIME(0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0),
  /** Bytes of a KV transfer: 2 KiB to 8 GiB by factors of four. */
  TRANSFER_BYTES(2048, 8192, 32768, 131072, 524288, 2097152, 8388608, 33554432, 134217728, 536870912, 2147483648.0,
      8589934592.0),
  /** Descriptors of a KV transfer. */
  TRANSFER_DESCRIPTORS(10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000),
  /** Bytes of an offloading transfer. */
  OFFLOAD_SIZE(1e6, 5e6, 1e7, 2e7, 4e7, 6e7, 8e7, 1e8, 1.5e8, 2e8),
  /** Seconds of a look-up call of the offloading connector. */
  OFFLOAD_LOOKUP(0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1),
  /** Seconds until a deferred look-up of the offloading connector is answered. */
  OFFLOAD_DEFERRED_LOOKUP(0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10),
  /** Blocks of a store of the offloading connector: 1 to 262144 by factors of four. */
  OFFLOAD_BLOCKS(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144),
  /** Seconds of a job that brings blocks up from a tier. */
  OFFLOAD_PROMOTION(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
  /** Seconds before and after the engine's own work: front end and delivery. */
  HANDOVER(0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60);

  private static final int[] ONE_TWO_FIVE = {1, 2, 5};

  @SuppressWarnings("ImmutableEnumChecker") // never handed out
  private final double[] fixed;

  BucketFamily(double... fixed) {
    this.fixed = fixed;
  }

  /** True if an operator may replace the bounds; those of connectors are fixed. */
  public boolean isReplaceable() {
    return compareTo(TRANSFER_TIME) < 0;
  }

  /** The name in options. */
  public String option() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * The upper bounds, ascending, without the infinite one.
   *
   * @param maxModelLen longest context in tokens; matters to {@link #REQUEST_TOKENS} alone
   */
  public double[] bounds(int maxModelLen) {
    return this == REQUEST_TOKENS ? series(ONE_TWO_FIVE, maxModelLen) : fixed.clone();
  }

  /**
   * Each mantissa times each power of ten, up to a limit.
   *
   * @param mantissas ascending
   * @param limit the largest bound allowed; is no bound itself unless the series meets it
   */
  public static double[] series(int[] mantissas, long limit) {
    List<Double> bounds = new ArrayList<>();
    for (long power = 1; power <= Long.MAX_VALUE / 100; power *= 10) {
      for (int mantissa : mantissas) {
        long bound = mantissa * power;
        if (bound > limit) {
          return bounds.stream().mapToDouble(Double::doubleValue).toArray();
        }
        bounds.add((double) bound);
      }
    }
    throw new IllegalArgumentException("limit " + limit + " is too large for a bucket series");
  }
}
