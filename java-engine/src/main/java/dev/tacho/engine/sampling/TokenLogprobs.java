package dev.tacho.engine.sampling;

/**
 * Log-probabilities (natural, from the unmodified logits) at one output position.
 *
 * @param logprob of the chosen token
 * @param rank of the chosen token, 1 for the most probable
 * @param topIds the most probable tokens, best first; the lower id first at a tie
 * @param topLogprobs theirs
 */
@SuppressWarnings("ArrayRecordComponent") // made only when asked for, read once
public record TokenLogprobs(float logprob, int rank, int[] topIds, float[] topLogprobs) {}
