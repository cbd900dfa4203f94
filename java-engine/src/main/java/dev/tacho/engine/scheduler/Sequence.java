package dev.tacho.engine.scheduler;

import dev.tacho.engine.kv.BlockTable;
import dev.tacho.engine.sampling.SamplerState;
import java.util.Arrays;

/**
 * One sequence of tokens that the engine extends: a request, or one of the n of a request. Owned by the engine thread
 * from the moment it enters the scheduler.
 */
public final class Sequence {
  private final String requestId;
  private final SamplerState sampler;
  private final BlockTable blockTable = new BlockTable();
  private final int promptLength;
  private int[] tokens;
  private int length;

  /**
   * @param requestId unique among the live ones
   * @param promptTokens the prompt, at least one id
   * @param sampler parameters and random numbers
   */
  public Sequence(String requestId, int[] promptTokens, SamplerState sampler) {
    this.requestId = requestId;
    this.sampler = sampler;
    this.promptLength = promptTokens.length;
    this.length = promptTokens.length;
    this.tokens = Arrays.copyOf(promptTokens, promptTokens.length + 16);
  }

  /** The request's id. */
  public String requestId() {
    return requestId;
  }

  /** Parameters and random numbers of the sampler. */
  public SamplerState sampler() {
    return sampler;
  }

  /** The sequence's KV blocks. */
  public BlockTable blockTable() {
    return blockTable;
  }

  /** Tokens of the prompt. */
  public int promptLength() {
    return promptLength;
  }

  /** Tokens of prompt and output. */
  public int length() {
    return length;
  }

  /** Token at a position of prompt and output. */
  public int token(int position) {
    return tokens[position];
  }

  /** Appends an output token. */
  void append(int id) {
    if (length == tokens.length) {
      tokens = Arrays.copyOf(tokens, length * 2);
    }
    tokens[length++] = id;
  }
}
