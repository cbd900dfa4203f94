package dev.tacho.metrics.stats;

import java.util.ArrayDeque;

/**
 * The hit rate of a cache over its latest requests: whole observations leave from the old end until the rest covers no
 * more than the limit, but the newest always stays. One thread.
 */
public final class HitRateWindow {
  /** Requests that the window covers unless told otherwise. */
  public static final int DEFAULT_REQUESTS = 1000;

  private final int maxRequests;
  private final ArrayDeque<long[]> observations = new ArrayDeque<>();
  private long requests;
  private long queries;
  private long hits;

  /** A window over {@value #DEFAULT_REQUESTS} requests. */
  public HitRateWindow() {
    this(DEFAULT_REQUESTS);
  }

  /** A window over a number of requests. */
  public HitRateWindow(int maxRequests) {
    this.maxRequests = maxRequests;
  }

  /**
   * Adds what some requests looked up. Nothing is added for no requests.
   *
   * @param newRequests requests
   * @param newQueries what they looked up
   * @param newHits what they found
   */
  public void observe(long newRequests, long newQueries, long newHits) {
    if (newRequests == 0) {
      return;
    }
    observations.addLast(new long[] {newRequests, newQueries, newHits});
    add(newRequests, newQueries, newHits);
    while (observations.size() > 1 && requests > maxRequests) {
      long[] oldest = observations.removeFirst();
      add(-oldest[0], -oldest[1], -oldest[2]);
    }
  }

  /** Adds the look-ups of a snapshot; first forgets everything if the cache was emptied. */
  public void observe(CacheLookups lookups) {
    if (lookups.isReset()) {
      reset();
    }
    observe(lookups.requests(), lookups.queries(), lookups.hits());
  }

  /** Forgets everything. */
  public void reset() {
    observations.clear();
    requests = 0;
    queries = 0;
    hits = 0;
  }

  /** True if no request is in the window. */
  public boolean isEmpty() {
    return requests == 0;
  }

  /** Found per looked up, 0 if nothing was looked up. */
  public double rate() {
    return queries == 0 ? 0 : (double) hits / queries;
  }

  private void add(long moreRequests, long moreQueries, long moreHits) {
    requests += moreRequests;
    queries += moreQueries;
    hits += moreHits;
  }
}
