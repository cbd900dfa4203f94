package dev.tacho.engine;

/** A prompt that does not fit into the context. */
public final class PromptTooLongException extends EngineException {
  private static final long serialVersionUID = 1L;

  private final int promptTokens;
  private final int limitTokens;

  /**
   * @param promptTokens tokens of the prompt
   * @param limitTokens {@code max_model_len}: tokens of prompt and output together
   */
  public PromptTooLongException(int promptTokens, int limitTokens) {
    super(
        "the prompt has "
            + promptTokens
            + " tokens, but the context length (max_model_len) is "
            + limitTokens
            + " tokens, of which at least one must be left for the output");
    this.promptTokens = promptTokens;
    this.limitTokens = limitTokens;
  }

  /** Tokens of the prompt. */
  public int promptTokens() {
    return promptTokens;
  }

  /** Tokens of prompt and output together. */
  public int limitTokens() {
    return limitTokens;
  }
}
