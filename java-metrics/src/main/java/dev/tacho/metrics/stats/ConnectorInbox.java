package dev.tacho.metrics.stats;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Takes what a KV connector or an encoder cache reports, until the engine's next snapshot carries it along. Any thread
 * may report, but for the engine's hot path: reports take a lock, which the collector holds for microseconds. An inbox
 * of an engine without statistics forgets everything.
 */
public final class ConnectorInbox {
  private final boolean enabled;
  private final ConnectorCacheStats lookups = new ConnectorCacheStats();
  private final TransferStats transfers = new TransferStats();
  private final OffloadStats offload = new OffloadStats();
  private final EncoderCacheStats encoderCache = new EncoderCacheStats();
  private boolean fetchesChanged;
  private int toStart;
  private int inProgress;
  private int completed;

  /**
   * An inbox.
   *
   * @param enabled false if nobody reads it
   */
  public ConnectorInbox(boolean enabled) {
    this.enabled = enabled;
  }

  /** A look-up for an admitted request; see {@link ConnectorCacheStats#add(long, long, boolean, Map)}. */
  public synchronized void lookup(long tokens, long hits, boolean preempted,
      @Nullable Map<CacheSource, Long> bySource) {
    if (enabled) {
      lookups.add(tokens, hits, preempted, bySource);
    }
  }

  /** Requests whose keys and values are fetched, by how far that is; replaces what was said before. */
  public synchronized void fetches(int newToStart, int newInProgress, int newCompleted) {
    fetchesChanged = enabled;
    toStart = newToStart;
    inProgress = newInProgress;
    completed = newCompleted;
  }

  /** A finished transfer between engines. */
  public synchronized void transfer(double seconds, double secondsToPost, long bytes, long descriptors) {
    if (enabled) {
      transfers.add(seconds, secondsToPost, bytes, descriptors);
    }
  }

  /** Failures of transfers between engines; see {@link TransferStats#addFailures}. */
  public synchronized void failures(long failed, long handshakes, long notifications, long expired, long late) {
    if (enabled) {
      transfers.addFailures(failed, handshakes, notifications, expired, late);
    }
  }

  /** Offloaded blocks came back. */
  public synchronized void loaded(long bytes, double seconds) {
    if (enabled) {
      offload.loaded(bytes, seconds);
    }
  }

  /** Blocks were offloaded. */
  public synchronized void stored(long bytes, double seconds) {
    if (enabled) {
      offload.stored(bytes, seconds);
    }
  }

  /** Anything else of the offloading connector; see {@link OffloadStats#report}. */
  public synchronized void offload(OffloadSeries series, int child, double value) {
    if (enabled) {
      offload.report(series, child, value);
    }
  }

  /** A figure of the encoder cache's log line, to be added to what it was in this interval. */
  public synchronized void encoderCache(String name, Number value) {
    if (enabled) {
      encoderCache.add(name, value);
    }
  }

  /** Hands everything over and is empty then. Called by the collector before a snapshot goes out. */
  public synchronized void moveTo(SchedulerStats stats) {
    if (fetchesChanged) {
      stats.kvFetches(toStart, inProgress, completed);
      fetchesChanged = false;
    }
    stats.connectorCache().add(lookups);
    lookups.clear();
    stats.transfers().add(transfers);
    transfers.clear();
    stats.offload().add(offload);
    offload.clear();
    stats.encoderCache().add(encoderCache);
    encoderCache.clear();
  }
}
