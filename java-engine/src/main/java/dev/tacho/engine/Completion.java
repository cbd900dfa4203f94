package dev.tacho.engine;

import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.stats.RequestSpeculation;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The answer to a request: its completions and what they cost. The short accessors speak of the first completion, which
 * is the only one unless {@link SamplingParams#n()} asked for more.
 *
 * @param requestId the request's id
 * @param promptTokenIds the prompt as the model saw it, special tokens included
 * @param choices the completions, by index; at least one
 * @param usage tokens
 * @param timings where the time went
 * @param speculation what became of the drafts; null unless {@link EngineConfig#perRequestSpecDecodeMetrics()} asks for
 *     it, tokens are drafted and there is one completion
 */
public record Completion(
    String requestId, List<Integer> promptTokenIds, List<Choice> choices, Usage usage, Timings timings,
    @Nullable RequestSpeculation speculation) {
  /** Copies the lists. */
  public Completion {
    promptTokenIds = List.copyOf(promptTokenIds);
    choices = List.copyOf(choices);
    if (choices.isEmpty()) {
      throw new IllegalArgumentException("a completion needs a choice");
    }
  }

  /**
   * One of the completions.
   *
   * @param index its place, from 0
   * @param text the text, without the prompt and without a stop string
   * @param tokenIds the tokens that were generated, those of a stop string included
   * @param finishReason why it ended
   * @param stopReason what exactly ended it, if there is more to say
   * @param logprobs a position each for {@code tokenIds}; empty if they were not asked for
   */
  public record Choice(
      int index,
      String text,
      List<Integer> tokenIds,
      FinishReason finishReason,
      @Nullable StopReason stopReason,
      List<PositionLogprobs> logprobs) {
    /** Copies the lists. */
    public Choice {
      tokenIds = List.copyOf(tokenIds);
      logprobs = List.copyOf(logprobs);
    }
  }

  /** Text of the first completion. */
  public String text() {
    return choices.getFirst().text();
  }

  /** Token ids of the first completion. */
  public List<Integer> tokenIds() {
    return choices.getFirst().tokenIds();
  }

  /** Why the first completion ended. */
  public FinishReason finishReason() {
    return choices.getFirst().finishReason();
  }

  /** What exactly ended the first completion, if there is more to say. */
  public @Nullable StopReason stopReason() {
    return choices.getFirst().stopReason();
  }

  /** Log-probabilities of the first completion; empty if they were not asked for. */
  public List<PositionLogprobs> logprobs() {
    return choices.getFirst().logprobs();
  }
}
