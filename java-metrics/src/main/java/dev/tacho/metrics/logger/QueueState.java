package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.SchedulerStats;

/** The state of one scheduler, or the sum of several, as a log line shows it. */
record QueueState(int running, int waiting, int deferred, int fetchesToStart, int fetchesInProgress,
    int fetchesCompleted, double kvCacheUsage) {
  static final QueueState EMPTY = new QueueState(0, 0, 0, 0, 0, 0, 0);

  static QueueState of(SchedulerStats stats) {
    return new QueueState(stats.running(), stats.waiting(), stats.deferred(), stats.fetchesToStart(),
        stats.fetchesInProgress(), stats.fetchesCompleted(), stats.kvCacheUsage());
  }

  QueueState plus(QueueState other) {
    return new QueueState(running + other.running, waiting + other.waiting, deferred + other.deferred,
        fetchesToStart + other.fetchesToStart, fetchesInProgress + other.fetchesInProgress,
        fetchesCompleted + other.fetchesCompleted, kvCacheUsage + other.kvCacheUsage);
  }

  QueueState withUsage(double usage) {
    return new QueueState(running, waiting, deferred, fetchesToStart, fetchesInProgress, fetchesCompleted, usage);
  }

  boolean isFetching() {
    return fetchesToStart != 0 || fetchesInProgress != 0 || fetchesCompleted != 0;
  }
}
