package dev.tacho.metrics.stats;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Look-ups of a KV connector since the snapshot before, and where it found what it found. Those of requests that had
 * been preempted are left out. One thread.
 */
public final class ConnectorCacheStats {
  private static final Logger LOG = LoggerFactory.getLogger(ConnectorCacheStats.class);
  private static final CacheSource[] SOURCES = CacheSource.values();

  private final CacheLookups lookups = new CacheLookups();
  private final long[] hitsBySource = new long[SOURCES.length];
  private boolean warned;

  /**
   * Adds a request's look-up.
   *
   * @param tokens tokens looked up
   * @param hits tokens found
   * @param preempted true if the request had been preempted before: nothing is counted
   * @param bySource tokens found by source, or null if the connector does not say; if they do not add up to the hits,
   *     all hits count as of an unspecified source
   */
  public void add(long tokens, long hits, boolean preempted, @Nullable Map<CacheSource, Long> bySource) {
    if (preempted) {
      return;
    }
    lookups.add(1, tokens, hits);
    if (bySource == null) {
      return;
    }
    long sum = 0;
    for (long value : bySource.values()) {
      sum += value;
    }
    if (sum != hits) {
      if (!warned) {
        warned = true;
        LOG.warn("A connector attributes {} of {} hits to sources; they count as {}", sum, hits,
            CacheSource.EXTERNAL_UNSPECIFIED.label());
      }
      hitsBySource[CacheSource.EXTERNAL_UNSPECIFIED.ordinal()] += hits;
      return;
    }
    bySource.forEach((source, value) -> hitsBySource[source.ordinal()] += value);
  }

  /** Adds the look-ups of another. */
  void add(ConnectorCacheStats other) {
    lookups.add(other.lookups);
    for (int i = 0; i < hitsBySource.length; i++) {
      hitsBySource[i] += other.hitsBySource[i];
    }
  }

  /** Forgets the look-ups. */
  public void clear() {
    lookups.clear();
    for (int i = 0; i < hitsBySource.length; i++) {
      hitsBySource[i] = 0;
    }
  }

  /** Sums of the look-ups. */
  public CacheLookups lookups() {
    return lookups;
  }

  /** Tokens found in a source. */
  public long hits(CacheSource source) {
    return hitsBySource[source.ordinal()];
  }

  /** True once a connector's sources did not add up to its hits. */
  public boolean hasWarned() {
    return warned;
  }
}
