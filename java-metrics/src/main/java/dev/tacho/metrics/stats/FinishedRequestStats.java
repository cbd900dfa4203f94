package dev.tacho.metrics.stats;

import dev.tacho.metrics.event.FinishReason;

/**
 * What is known of a sequence that ended with an output. Intervals are in seconds and are never clamped: the clocks
 * decide.
 *
 * @param reason why it ended
 * @param endToEndSeconds arrival to the pick-up of its last output
 * @param promptTokens length of the prompt
 * @param generatedTokens tokens generated
 * @param maxTokens limit that the caller gave, 0 if none
 * @param cachedTokens prompt tokens that were not computed
 * @param preemptions times that it lost its place
 * @param queuedSeconds queued to first scheduled
 * @param prefillSeconds first scheduled to first output
 * @param decodeSeconds first to last output
 * @param inferenceSeconds first scheduled to last output
 * @param secondsPerOutputToken decode time for each token after the first, 0 if there is none
 * @param corrupted true if an output was computed from logits with a NaN
 */
public record FinishedRequestStats(
    FinishReason reason,
    double endToEndSeconds,
    int promptTokens,
    int generatedTokens,
    int maxTokens,
    int cachedTokens,
    int preemptions,
    double queuedSeconds,
    double prefillSeconds,
    double decodeSeconds,
    double inferenceSeconds,
    double secondsPerOutputToken,
    boolean corrupted) {}
