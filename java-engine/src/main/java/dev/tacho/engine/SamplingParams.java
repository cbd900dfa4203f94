package dev.tacho.engine;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;

/**
 * How tokens are chosen and when a request stops. Immutable; every value is checked when the object is made, with the
 * OpenAI API's name for the parameter in the error.
 *
 * @param temperature 0 or below 1e-5: greedy; else logits are divided by it; at most 2
 * @param topK keep the k most probable tokens; 0 keeps all
 * @param topP keep the smallest set of tokens whose probabilities sum to at least this, in (0, 1]
 * @param minP drop tokens less probable than this share of the most probable one, in [0, 1]
 * @param seed seed of the request's own random numbers; without one the engine takes a fresh one
 * @param n completions for the prompt, at least 1; child i uses seed + i
 * @param maxTokens tokens to generate at most, at least 1; {@link #UNTIL_CONTEXT_END} for what the context has left
 * @param minTokens tokens before an end-of-text or stop token may be sampled
 * @param stop strings that end the text; they are not part of it
 * @param stopTokenIds token ids that end the request
 * @param ignoreEos end-of-text does not end the request
 * @param logprobs the so many most probable tokens are reported with their log-probability; -1 for none
 * @param presencePenalty taken off the logit of a token that the output has, in [-2, 2]; 0 changes nothing
 * @param frequencyPenalty taken off a token's logit as often as the output has it, in [-2, 2]; 0 changes nothing
 * @param repetitionPenalty a positive logit of a token that prompt or output has is divided by it, another multiplied;
 *     above 0, and 1 changes nothing
 * @param logitBias added to the logits of these tokens, each in [-100, 100]
 * @param allowedTokenIds no other token is chosen; empty allows all
 * @param badWords texts that the output must not contain as these tokens, at the begin of a word and inside one
 */
public record SamplingParams(
    float temperature,
    int topK,
    float topP,
    float minP,
    OptionalLong seed,
    int n,
    int maxTokens,
    int minTokens,
    List<String> stop,
    List<Integer> stopTokenIds,
    boolean ignoreEos,
    int logprobs,
    float presencePenalty,
    float frequencyPenalty,
    float repetitionPenalty,
    Map<Integer, Float> logitBias,
    List<Integer> allowedTokenIds,
    List<String> badWords) {
  /** {@code maxTokens}: as many as the context has left. */
  public static final int UNTIL_CONTEXT_END = Integer.MAX_VALUE;

  /** Below this temperature sampling is greedy. */
  public static final float GREEDY_BELOW = 1e-5f;

  /** The largest {@code logitBias}, positive or negative. */
  public static final float MAX_LOGIT_BIAS = 100;

  /** The largest {@code logprobs}. */
  public static final int MAX_LOGPROBS = 20;

  /** Checks every value. */
  public SamplingParams {
    Objects.requireNonNull(seed, "seed");
    stop = List.copyOf(stop);
    stopTokenIds = List.copyOf(stopTokenIds);
    check(temperature >= 0 && temperature <= 2, "temperature", "must be in [0, 2], is " + temperature);
    check(topK >= 0, "top_k", "must be at least 0 (0 keeps all), is " + topK);
    check(topP > 0 && topP <= 1, "top_p", "must be in (0, 1], is " + topP);
    check(minP >= 0 && minP <= 1, "min_p", "must be in [0, 1], is " + minP);
    check(n >= 1 && n <= 128, "n", "must be in [1, 128], is " + n);
    check(maxTokens >= 1, "max_tokens", "must be at least 1, is " + maxTokens);
    check(minTokens >= 0, "min_tokens", "must be at least 0, is " + minTokens);
    check(minTokens <= maxTokens, "min_tokens", "must be at most max_tokens " + maxTokens + ", is " + minTokens);
    check(stop.size() <= 16, "stop", "at most 16 strings, there are " + stop.size());
    check(stop.stream().noneMatch(String::isEmpty), "stop", "an empty string would stop everything");
    check(
        logprobs >= -1 && logprobs <= MAX_LOGPROBS,
        "logprobs",
        "must be in [-1, " + MAX_LOGPROBS + "] (-1: none), is " + logprobs);
    checkPenalty("presence_penalty", presencePenalty);
    checkPenalty("frequency_penalty", frequencyPenalty);
    check(
        repetitionPenalty > 0 && repetitionPenalty < Float.POSITIVE_INFINITY,
        "repetition_penalty",
        "must be above 0, is " + repetitionPenalty);
    logitBias = Map.copyOf(logitBias);
    logitBias.forEach(
        (id, bias) -> {
          checkId("logit_bias", id, Integer.MAX_VALUE);
          check(
              Math.abs(bias) <= MAX_LOGIT_BIAS,
              "logit_bias",
              "must be in [-100, 100], is " + bias + " for token " + id);
        });
    allowedTokenIds = List.copyOf(allowedTokenIds);
    allowedTokenIds.forEach(id -> checkId("allowed_token_ids", id, Integer.MAX_VALUE));
    badWords = List.copyOf(badWords);
    check(badWords.stream().noneMatch(String::isBlank), "bad_words", "a blank text is none");
  }

  private static void checkPenalty(String parameter, float penalty) {
    check(penalty >= -2 && penalty <= 2, parameter, "must be in [-2, 2], is " + penalty);
  }

  private static void checkId(String parameter, int id, int vocabSize) {
    check(id >= 0 && id < vocabSize, parameter, "token id " + id + " is not in [0, " + vocabSize + ")");
  }

  /**
   * Checks the token ids against a model.
   *
   * @throws InvalidRequestException if one is outside its vocabulary
   */
  void checkTokenIds(int vocabSize) {
    stopTokenIds.forEach(id -> checkId("stop_token_ids", id, vocabSize));
    logitBias.keySet().forEach(id -> checkId("logit_bias", id, vocabSize));
    allowedTokenIds.forEach(id -> checkId("allowed_token_ids", id, vocabSize));
  }

  private static void check(boolean holds, String parameter, String problem) {
    if (!holds) {
      throw new InvalidRequestException(parameter, problem);
    }
  }

  /** Greedy, 16 tokens: the most probable token each time. */
  public static SamplingParams greedy() {
    return builder().temperature(0).build();
  }

  /** The OpenAI API's defaults: temperature 1, 16 tokens. */
  public static Builder builder() {
    return new Builder();
  }

  /** True if the most probable token is taken each time. */
  public boolean isGreedy() {
    return temperature < GREEDY_BELOW;
  }

  /** The same with another {@code maxTokens}. */
  public SamplingParams withMaxTokens(int tokens) {
    return toBuilder().maxTokens(tokens).build();
  }

  /** The same with another seed. */
  public SamplingParams withSeed(long value) {
    return toBuilder().seed(value).build();
  }

  /** The same with end-of-text ignored or not. */
  public SamplingParams withIgnoreEos(boolean ignore) {
    return toBuilder().ignoreEos(ignore).build();
  }

  /** A builder that starts from these values. */
  public Builder toBuilder() {
    Builder b = new Builder();
    b.temperature = temperature;
    b.topK = topK;
    b.topP = topP;
    b.minP = minP;
    b.seed = seed;
    b.n = n;
    b.maxTokens = maxTokens;
    b.minTokens = minTokens;
    b.stop = stop;
    b.stopTokenIds = stopTokenIds;
    b.ignoreEos = ignoreEos;
    b.logprobs = logprobs;
    b.presencePenalty = presencePenalty;
    b.frequencyPenalty = frequencyPenalty;
    b.repetitionPenalty = repetitionPenalty;
    b.logitBias = logitBias;
    b.allowedTokenIds = allowedTokenIds;
    b.badWords = badWords;
    return b;
  }

  /** Collects values; {@link #build()} checks them. */
  public static final class Builder {
    private float temperature = 1;
    private int topK = 0;
    private float topP = 1;
    private float minP = 0;
    private OptionalLong seed = OptionalLong.empty();
    private int n = 1;
    private int maxTokens = 16;
    private int minTokens = 0;
    private List<String> stop = List.of();
    private List<Integer> stopTokenIds = List.of();
    private boolean ignoreEos = false;
    private int logprobs = -1;
    private float presencePenalty = 0;
    private float frequencyPenalty = 0;
    private float repetitionPenalty = 1;
    private Map<Integer, Float> logitBias = Map.of();
    private List<Integer> allowedTokenIds = List.of();
    private List<String> badWords = List.of();

    private Builder() {}

    /** See {@link SamplingParams#temperature()}. */
    public Builder temperature(double value) {
      temperature = (float) value;
      return this;
    }

    /** See {@link SamplingParams#topK()}. */
    public Builder topK(int value) {
      topK = value;
      return this;
    }

    /** See {@link SamplingParams#topP()}. */
    public Builder topP(double value) {
      topP = (float) value;
      return this;
    }

    /** See {@link SamplingParams#minP()}. */
    public Builder minP(double value) {
      minP = (float) value;
      return this;
    }

    /** See {@link SamplingParams#seed()}. */
    public Builder seed(long value) {
      seed = OptionalLong.of(value);
      return this;
    }

    /** See {@link SamplingParams#n()}. */
    public Builder n(int value) {
      n = value;
      return this;
    }

    /** See {@link SamplingParams#maxTokens()}. */
    public Builder maxTokens(int value) {
      maxTokens = value;
      return this;
    }

    /** See {@link SamplingParams#minTokens()}. */
    public Builder minTokens(int value) {
      minTokens = value;
      return this;
    }

    /** See {@link SamplingParams#stop()}. */
    public Builder stop(List<String> value) {
      stop = value;
      return this;
    }

    /** See {@link SamplingParams#stopTokenIds()}. */
    public Builder stopTokenIds(List<Integer> value) {
      stopTokenIds = value;
      return this;
    }

    /** See {@link SamplingParams#ignoreEos()}. */
    public Builder ignoreEos(boolean value) {
      ignoreEos = value;
      return this;
    }

    /** See {@link SamplingParams#logprobs()}. */
    public Builder logprobs(int value) {
      logprobs = value;
      return this;
    }

    /** See {@link SamplingParams#presencePenalty()}. */
    public Builder presencePenalty(double value) {
      presencePenalty = (float) value;
      return this;
    }

    /** See {@link SamplingParams#frequencyPenalty()}. */
    public Builder frequencyPenalty(double value) {
      frequencyPenalty = (float) value;
      return this;
    }

    /** See {@link SamplingParams#repetitionPenalty()}. */
    public Builder repetitionPenalty(double value) {
      repetitionPenalty = (float) value;
      return this;
    }

    /** See {@link SamplingParams#logitBias()}. */
    public Builder logitBias(Map<Integer, Float> value) {
      logitBias = value;
      return this;
    }

    /** See {@link SamplingParams#allowedTokenIds()}. */
    public Builder allowedTokenIds(List<Integer> value) {
      allowedTokenIds = value;
      return this;
    }

    /** See {@link SamplingParams#badWords()}. */
    public Builder badWords(List<String> value) {
      badWords = value;
      return this;
    }

    /** The checked values. */
    public SamplingParams build() {
      return new SamplingParams(
          temperature,
          topK,
          topP,
          minP,
          seed,
          n,
          maxTokens,
          minTokens,
          stop,
          stopTokenIds,
          ignoreEos,
          logprobs,
          presencePenalty,
          frequencyPenalty,
          repetitionPenalty,
          logitBias,
          allowedTokenIds,
          badWords);
    }
  }
}
