package dev.tacho.engine;

/**
 * A token and how probable the model found it.
 *
 * @param tokenId the id
 * @param text the token's own text; bytes that are no whole character show as U+FFFD
 * @param logprob natural logarithm of its probability, from the unmodified logits
 */
public record TokenLogprob(int tokenId, String text, float logprob) {}
