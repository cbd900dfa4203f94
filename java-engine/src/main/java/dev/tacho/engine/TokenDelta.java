package dev.tacho.engine;

import dev.tacho.metrics.event.FinishReason;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What has come since the delta before: one token, or several if the reader was slower than the engine. All deltas of
 * an index, joined, are its completion.
 *
 * @param index which of the request's n completions
 * @param text text that is complete now: whole characters, no part of a stop string; may be empty
 * @param tokenIds the new tokens; may be empty
 * @param logprobs a position each for the new tokens; empty if they were not asked for
 * @param finishReason set in the last delta of the index, null before
 * @param stopReason what exactly ended it, in the last delta if there is more to say
 */
public record TokenDelta(
    int index,
    String text,
    List<Integer> tokenIds,
    List<PositionLogprobs> logprobs,
    @Nullable FinishReason finishReason,
    @Nullable StopReason stopReason) {
  /** Copies the lists. */
  public TokenDelta {
    tokenIds = List.copyOf(tokenIds);
    logprobs = List.copyOf(logprobs);
  }
}
