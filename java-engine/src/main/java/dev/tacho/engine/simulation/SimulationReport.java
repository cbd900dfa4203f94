package dev.tacho.engine.simulation;

/**
 * What a simulated run was like. Times are virtual seconds, percentiles right to within 1 %.
 *
 * @param requests requests, all of which ended
 * @param seconds from the first arrival to the last token
 * @param busySeconds of it with a step under way
 * @param steps steps
 * @param decodeTokens tokens computed one at a time, each by its own sequence
 * @param prefillTokens tokens computed of prompts, and again after preemptions
 * @param promptTokens tokens of all prompts
 * @param cachedTokens of them found in the prefix cache
 * @param outputTokens tokens generated
 * @param preemptions how often a sequence lost its blocks
 * @param meanKvUsage share of the KV blocks in use, averaged over the busy time
 * @param peakKvUsage the largest share
 * @param meanRunning running sequences, averaged over the busy time
 * @param peakRunning the most at a time
 * @param peakWaiting waiting sequences, the most at a time
 * @param queueTime arrival to first admission
 * @param timeToFirstToken arrival to first token
 * @param interTokenLatency token to token of one request
 * @param endToEnd arrival to last token
 */
public record SimulationReport(
    int requests,
    double seconds,
    double busySeconds,
    long steps,
    long decodeTokens,
    long prefillTokens,
    long promptTokens,
    long cachedTokens,
    long outputTokens,
    long preemptions,
    double meanKvUsage,
    double peakKvUsage,
    double meanRunning,
    int peakRunning,
    int peakWaiting,
    Times queueTime,
    Times timeToFirstToken,
    Times interTokenLatency,
    Times endToEnd) {
  /**
   * Many times, in seconds.
   *
   * @param count how many
   * @param mean their mean
   * @param p50 half of them are at most this
   * @param p90 nine in ten
   * @param p95 nineteen in twenty
   * @param p99 ninety-nine in a hundred
   * @param max the longest
   */
  public record Times(long count, double mean, double p50, double p90, double p95, double p99, double max) {}
}
