package dev.tacho.engine.simulation;

import java.util.Arrays;

/** Requests in the order of their arrival, a few numbers each, so that a million of them are small. Not thread-safe. */
public final class RequestTrace {
  /** {@code prefixGroup} of a request whose prompt has nothing in common with another's. */
  public static final int NO_GROUP = -1;

  private static final double MAX_SECONDS = 1e9;

  private long[] arrivalNanos = new long[16];
  private int[] promptTokens = new int[16];
  private int[] outputTokens = new int[16];
  private int[] prefixGroups = new int[16];
  private int[] prefixTokens = new int[16];
  private int size;
  private int longest;

  /**
   * Adds a request.
   *
   * @param arrivalSeconds from the beginning, not before the last one's
   * @param prompt tokens, at least 1
   * @param output tokens, at least 1
   * @param prefixGroup prompts of one group begin alike; {@link #NO_GROUP} for none
   * @param prefix the tokens that are alike; at most the whole prompt counts
   * @throws IllegalArgumentException if a value is out of range
   */
  public void add(double arrivalSeconds, int prompt, int output, int prefixGroup, int prefix) {
    if (!(arrivalSeconds >= 0 && arrivalSeconds <= MAX_SECONDS)) {
      throw new IllegalArgumentException("arrival must be in [0, 1e9] seconds, is " + arrivalSeconds);
    }
    long nanos = Math.round(arrivalSeconds * 1e9);
    if (size > 0 && nanos < arrivalNanos[size - 1]) {
      throw new IllegalArgumentException(
          "arrival goes back: " + arrivalSeconds + " after " + arrivalNanos[size - 1] / 1e9);
    }
    atLeast("prompt_tokens", prompt, 1);
    atLeast("output_tokens", output, 1);
    atLeast("prefix_tokens", prefix, 0);
    if ((long) prompt + output > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("prompt_tokens and output_tokens are more than " + Integer.MAX_VALUE);
    }
    if (size == arrivalNanos.length) {
      int capacity = size * 2;
      arrivalNanos = Arrays.copyOf(arrivalNanos, capacity);
      promptTokens = Arrays.copyOf(promptTokens, capacity);
      outputTokens = Arrays.copyOf(outputTokens, capacity);
      prefixGroups = Arrays.copyOf(prefixGroups, capacity);
      prefixTokens = Arrays.copyOf(prefixTokens, capacity);
    }
    arrivalNanos[size] = nanos;
    promptTokens[size] = prompt;
    outputTokens[size] = output;
    prefixGroups[size] = prefixGroup;
    prefixTokens[size++] = prefixGroup == NO_GROUP ? 0 : Math.min(prefix, prompt);
    longest = Math.max(longest, prompt + output);
  }

  private static void atLeast(String name, int value, int least) {
    if (value < least) {
      throw new IllegalArgumentException(name + " must be at least " + least + ", is " + value);
    }
  }

  /** Requests. */
  public int size() {
    return size;
  }

  /** Tokens of the request with the most, prompt and output together; 0 if there is none. */
  public int longest() {
    return longest;
  }

  long arrivalNanos(int i) {
    return arrivalNanos[i];
  }

  int outputTokens(int i) {
    return outputTokens[i];
  }

  /** Token ids of a prompt: equal at equal positions of one group's prefix, all others different. */
  int[] prompt(int i) {
    int[] tokens = new int[promptTokens[i]];
    int shared = prefixTokens[i];
    int group = ~prefixGroups[i] * 0x9E3779B1;
    int own = (i + 1) * 0x85EBCA6B;
    for (int t = 0; t < tokens.length; t++) {
      int mixed = ((t < shared ? group : own) + t) * 0xC2B2AE35;
      tokens[t] = (mixed ^ (mixed >>> 15)) & Integer.MAX_VALUE;
    }
    return tokens;
  }
}
