package dev.tacho.metrics.stats;

/** Look-ups of a cache since the snapshot before: who looked, for how much, and what was found. One thread. */
public final class CacheLookups {
  private long requests;
  private long queries;
  private long hits;
  private boolean reset;

  /**
   * Adds look-ups.
   *
   * @param moreRequests requests that looked
   * @param moreQueries what they looked up, in tokens or items
   * @param moreHits what they found
   */
  public void add(long moreRequests, long moreQueries, long moreHits) {
    requests += moreRequests;
    queries += moreQueries;
    hits += moreHits;
  }

  /** Says that the cache was emptied before these look-ups: the window of its hit rate begins anew. */
  public void markReset() {
    reset = true;
  }

  /** Adds the look-ups of another. */
  void add(CacheLookups other) {
    add(other.requests, other.queries, other.hits);
    reset |= other.reset;
  }

  /** Forgets everything. */
  public void clear() {
    requests = 0;
    queries = 0;
    hits = 0;
    reset = false;
  }

  /** Requests that looked. */
  public long requests() {
    return requests;
  }

  /** What they looked up. */
  public long queries() {
    return queries;
  }

  /** What they found. */
  public long hits() {
    return hits;
  }

  /** True if the cache was emptied before. */
  public boolean isReset() {
    return reset;
  }
}
