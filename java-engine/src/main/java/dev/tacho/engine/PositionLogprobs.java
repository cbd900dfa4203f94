package dev.tacho.engine;

import java.util.List;

/**
 * Log-probabilities at one position of the output.
 *
 * @param chosen the token that was taken
 * @param rank its rank, 1 for the most probable
 * @param top the most probable tokens, best first, as many as {@link SamplingParams#logprobs()} asked for
 */
public record PositionLogprobs(TokenLogprob chosen, int rank, List<TokenLogprob> top) {
  /** Copies the list. */
  public PositionLogprobs {
    top = List.copyOf(top);
  }
}
