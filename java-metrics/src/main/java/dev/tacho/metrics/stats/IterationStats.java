package dev.tacho.metrics.stats;

import dev.tacho.metrics.event.FinishReason;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * What one batch of outputs brought: sums, samples and finished requests. Reused by the collector.
 *
 * <p>Events that came without outputs (an arrival, a preemption, an abort) make one that has {@link #outputs} 0; it
 * counts, but is no iteration: no sample of tokens an iteration is due.
 */
public final class IterationStats {
  private int outputs;
  private long accepted;
  private long generationTokens;
  private long preemptions;
  private long corruptedRequests;
  private final PromptTokenStats promptTokens = new PromptTokenStats();
  private double deliverySeconds;
  private final Samples frontendTimes = new Samples();
  private final Samples timesToFirstToken = new Samples();
  private final Samples interTokenLatencies = new Samples();
  private final Samples maxGenerationTokens = new Samples();
  private final Samples paramsN = new Samples();
  private final Longest longestTimeToFirstToken = new Longest();
  private final Longest longestInterTokenLatency = new Longest();
  private final Longest longestEndToEnd = new Longest();
  private final List<FinishedRequestStats> finished = new ArrayList<>();
  private final CacheLookups multiModalCache = new CacheLookups();
  private final long[] watermarks = new long[3];
  private final long[] ended = new long[FinishReason.values().length];

  /** Empties everything. */
  public void clear() {
    outputs = 0;
    accepted = 0;
    generationTokens = 0;
    preemptions = 0;
    corruptedRequests = 0;
    promptTokens.clear();
    deliverySeconds = 0;
    frontendTimes.clear();
    timesToFirstToken.clear();
    interTokenLatencies.clear();
    maxGenerationTokens.clear();
    paramsN.clear();
    longestTimeToFirstToken.clear();
    longestInterTokenLatency.clear();
    longestEndToEnd.clear();
    finished.clear();
    multiModalCache.clear();
    Arrays.fill(watermarks, 0);
    Arrays.fill(ended, 0);
  }

  /** A copy for who keeps it. */
  public IterationStats copy() {
    IterationStats copy = new IterationStats();
    copy.outputs = outputs;
    copy.accepted = accepted;
    copy.generationTokens = generationTokens;
    copy.preemptions = preemptions;
    copy.corruptedRequests = corruptedRequests;
    copy.promptTokens.add(promptTokens);
    copy.deliverySeconds = deliverySeconds;
    copy.frontendTimes.add(frontendTimes);
    copy.timesToFirstToken.add(timesToFirstToken);
    copy.interTokenLatencies.add(interTokenLatencies);
    copy.maxGenerationTokens.add(maxGenerationTokens);
    copy.paramsN.add(paramsN);
    copy.longestTimeToFirstToken.observe(longestTimeToFirstToken);
    copy.longestInterTokenLatency.observe(longestInterTokenLatency);
    copy.longestEndToEnd.observe(longestEndToEnd);
    copy.finished.addAll(finished);
    copy.multiModalCache.add(multiModalCache);
    System.arraycopy(watermarks, 0, copy.watermarks, 0, watermarks.length);
    System.arraycopy(ended, 0, copy.ended, 0, ended.length);
    return copy;
  }

  /** True if nothing happened at all. */
  public boolean isEmpty() {
    if (outputs > 0 || accepted > 0 || preemptions > 0 || !finished.isEmpty()) {
      return false;
    }
    for (long count : ended) {
      if (count > 0) {
        return false;
      }
    }
    return true;
  }

  /** Says how many outputs the batch has; those of forgotten requests included. */
  public void outputs(int count) {
    outputs = count;
  }

  /** Counts a sequence that entered the scheduler. */
  public void addAccepted() {
    accepted++;
  }

  /** Counts generated tokens. */
  public void addGenerationTokens(long count) {
    generationTokens += count;
  }

  /** Counts a preemption. */
  public void addPreemption() {
    preemptions++;
  }

  /** Counts preemptions. */
  public void addPreemptions(long count) {
    preemptions += count;
  }

  /** Adds a finished request. */
  public void addFinished(FinishedRequestStats request) {
    finished.add(request);
    if (request.corrupted()) {
      corruptedRequests++;
    }
  }

  /** Counts a sequence that ended without an output, so that no time of it is observed. */
  public void addEnded(FinishReason reason) {
    ended[reason.id()]++;
  }

  /** Counts finished requests with an output computed from logits with a NaN. */
  public void addCorrupted(long count) {
    corruptedRequests += count;
  }

  /** Counts finished requests by what became of their text watermark: with one, skipped, without. */
  public void addWatermarks(long watermarked, long skipped, long notWatermarked) {
    watermarks[0] += watermarked;
    watermarks[1] += skipped;
    watermarks[2] += notWatermarked;
  }

  /** Outputs in the batch. */
  public int outputs() {
    return outputs;
  }

  /** Sequences that entered the scheduler. */
  public long accepted() {
    return accepted;
  }

  /** Tokens generated. */
  public long generationTokens() {
    return generationTokens;
  }

  /** Preemptions. */
  public long preemptions() {
    return preemptions;
  }

  /** Finished requests with an output computed from logits with a NaN. */
  public long corruptedRequests() {
    return corruptedRequests;
  }

  /** Finished requests by watermark: with one (0), skipped (1), without (2). */
  public long watermarks(int status) {
    return watermarks[status];
  }

  /** Look-ups of the multi-modal cache. */
  public CacheLookups multiModalCache() {
    return multiModalCache;
  }

  /** Prompt tokens of the requests that gave their first output. */
  public PromptTokenStats promptTokens() {
    return promptTokens;
  }

  /** Says how long the batch's outputs waited for their pick-up, in seconds. */
  public void delivery(double seconds) {
    deliverySeconds = seconds;
  }

  /** Seconds from the batch to the pick-up of its outputs, the same for each of them. */
  public double deliverySeconds() {
    return deliverySeconds;
  }

  /** Seconds from the arrival of a request to the queueing of a sequence of it, one for each first output. */
  public Samples frontendTimes() {
    return frontendTimes;
  }

  /** Seconds from arrival to the pick-up of a first output, one for each such output. */
  public Samples timesToFirstToken() {
    return timesToFirstToken;
  }

  /** Seconds between an output and the one before it, one for each later output, however many tokens it has. */
  public Samples interTokenLatencies() {
    return interTokenLatencies;
  }

  /** The most tokens that a sequence of a request generated, one for each request that ended. */
  public Samples maxGenerationTokens() {
    return maxGenerationTokens;
  }

  /** The parameter n of those requests. */
  public Samples paramsN() {
    return paramsN;
  }

  /** The longest of {@link #timesToFirstToken}, of requests whose id is known. */
  public Longest longestTimeToFirstToken() {
    return longestTimeToFirstToken;
  }

  /** The longest of {@link #interTokenLatencies}, of requests whose id is known. */
  public Longest longestInterTokenLatency() {
    return longestInterTokenLatency;
  }

  /** The longest end-to-end time of {@link #finished} requests whose id is known. */
  public Longest longestEndToEnd() {
    return longestEndToEnd;
  }

  /** Requests that ended with an output. */
  public List<FinishedRequestStats> finished() {
    return Collections.unmodifiableList(finished);
  }

  /** Sequences that ended without an output, for a reason. */
  public long ended(FinishReason reason) {
    return ended[reason.id()];
  }

  /** Tokens that the iteration worked on: computed prompt tokens and generated ones. */
  public long iterationTokens() {
    return promptTokens.computed() + generationTokens;
  }
}
