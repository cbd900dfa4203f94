package dev.tacho.engine;

/**
 * Tokens of a request, as the OpenAI API counts them: the prompt once, however many completions were asked for.
 *
 * @param promptTokens tokens of the prompt, special tokens included
 * @param cachedTokens those of them whose keys and values were found in a cache
 * @param generatedTokens tokens of all completions together; tokens behind a stop string are not part of any
 */
public record Usage(int promptTokens, int cachedTokens, int generatedTokens) {
  /** Prompt and generated tokens together. */
  public int totalTokens() {
    return Math.addExact(promptTokens, generatedTokens);
  }
}
