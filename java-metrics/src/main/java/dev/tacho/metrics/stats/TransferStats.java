package dev.tacho.metrics.stats;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** KV transfers between engines (NIXL): the finished ones, and the failures by kind. One thread. */
public final class TransferStats {
  private static final double MIB = 1 << 20;

  private final Samples transferSeconds = new Samples();
  private final Samples postSeconds = new Samples();
  private final Samples bytes = new Samples();
  private final Samples descriptors = new Samples();
  private long failedTransfers;
  private long failedHandshakes;
  private long failedNotifications;
  private long expiredRequests;
  private long lateNotifications;

  /** Adds a finished transfer. */
  public void add(double seconds, double secondsToPost, long transferredBytes, long usedDescriptors) {
    transferSeconds.add(seconds);
    postSeconds.add(secondsToPost);
    bytes.add((double) transferredBytes);
    descriptors.add((double) usedDescriptors);
  }

  /** Adds failures: of transfers, handshakes, notifications; requests that expired; notifications after that. */
  public void addFailures(long transfers, long handshakes, long notifications, long expired, long late) {
    failedTransfers += transfers;
    failedHandshakes += handshakes;
    failedNotifications += notifications;
    expiredRequests += expired;
    lateNotifications += late;
  }

  /** Adds everything of another. */
  public void add(TransferStats other) {
    for (int i = 0; i < other.bytes.size(); i++) {
      add(other.transferSeconds.get(i), other.postSeconds.get(i), (long) other.bytes.get(i),
          (long) other.descriptors.get(i));
    }
    addFailures(other.failedTransfers, other.failedHandshakes, other.failedNotifications, other.expiredRequests,
        other.lateNotifications);
  }

  /** Forgets everything. */
  public void clear() {
    transferSeconds.clear();
    postSeconds.clear();
    bytes.clear();
    descriptors.clear();
    failedTransfers = 0;
    failedHandshakes = 0;
    failedNotifications = 0;
    expiredRequests = 0;
    lateNotifications = 0;
  }

  /** True if nothing happened. */
  public boolean isEmpty() {
    return bytes.size() == 0 && failedTransfers() == 0 && expiredRequests == 0 && lateNotifications == 0;
  }

  /** Durations of the finished transfers. */
  public Samples transferSeconds() {
    return transferSeconds;
  }

  /** Times that it took to post them. */
  public Samples postSeconds() {
    return postSeconds;
  }

  /** Bytes of each. */
  public Samples bytes() {
    return bytes;
  }

  /** Descriptors of each. */
  public Samples descriptors() {
    return descriptors;
  }

  /** Failures of transfers, handshakes and notifications together. */
  public long failedTransfers() {
    return failedTransfers + failedHandshakes + failedNotifications;
  }

  /** Failures of notifications. */
  public long failedNotifications() {
    return failedNotifications;
  }

  /** Requests whose keys and values were given up. */
  public long expiredRequests() {
    return expiredRequests;
  }

  /** Notifications that came after that. */
  public long lateNotifications() {
    return lateNotifications;
  }

  /** The figures of a log line by their names there, in its order; integers print without a point. */
  public Map<String, Number> summary() {
    Map<String, Number> figures = new LinkedHashMap<>();
    int count = bytes.size();
    figures.put("Num successful transfers", count);
    figures.put("Avg xfer time (ms)", figure(mean(transferSeconds) * 1e3, 3));
    figures.put("P90 xfer time (ms)", figure(p90(transferSeconds) * 1e3, 3));
    figures.put("Avg post time (ms)", figure(mean(postSeconds) * 1e3, 3));
    figures.put("P90 post time (ms)", figure(p90(postSeconds) * 1e3, 3));
    figures.put("Avg MB per transfer", figure(sum(bytes) / MIB / count, 3));
    figures.put("Throughput (MB/s)", figure(sum(bytes) / MIB / sum(transferSeconds), 3));
    figures.put("Avg number of descriptors", figure(mean(descriptors), 1));
    figures.put("Num failed transfers", failedTransfers());
    figures.put("Num KV expired reqs", expiredRequests);
    figures.put("Num notifs after expiry", lateNotifications);
    return figures;
  }

  private Number figure(double value, int digits) {
    if (bytes.size() == 0) {
      return 0;
    }
    return Double.isFinite(value)
        ? new BigDecimal(value).setScale(digits, RoundingMode.HALF_EVEN).doubleValue() : value;
  }

  private static double sum(Samples samples) {
    double sum = 0;
    for (int i = 0; i < samples.size(); i++) {
      sum += samples.get(i);
    }
    return sum;
  }

  private static double mean(Samples samples) {
    return sum(samples) / samples.size();
  }

  private static double p90(Samples samples) {
    if (samples.size() == 0) {
      return Double.NaN;
    }
    double[] sorted = samples.toArray();
    Arrays.sort(sorted);
    double position = 0.9 * (sorted.length - 1);
    int below = (int) position;
    int above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (sorted[above] - sorted[below]) * (position - below);
  }
}
