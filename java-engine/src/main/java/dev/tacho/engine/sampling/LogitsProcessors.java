package dev.tacho.engine.sampling;

import dev.tacho.engine.SamplingParams;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a request does to its logits before a token is chosen, in this order: allowed ids, bad words, min_tokens, bias,
 * then the penalties for repetition, frequency and presence. A token that one of the first three rules out stays ruled
 * out: nothing is added to minus infinity. Belongs to one sequence; one thread at a time.
 */
final class LogitsProcessors {
  private final SamplingParams params;
  private final int[] endTokenIds;
  private final int[][] badWords;
  private final @Nullable BitSet allowed;
  private final int[] biasIds;
  private final float[] biases;
  private final boolean penalizes;
  private final @Nullable TokenHistory history;

  /**
   * @param params of the request
   * @param endTokenIds end-of-text and stop ids, which {@code min_tokens} holds back
   * @param promptIds the prompt, for the repetition penalty
   * @param badWords ids of each word that the output must not have
   */
  LogitsProcessors(SamplingParams params, int[] endTokenIds, int[] promptIds, int[][] badWords) {
    this.params = params;
    this.endTokenIds = endTokenIds;
    this.badWords = badWords;
    allowed = params.allowedTokenIds().isEmpty() ? null : bits(params.allowedTokenIds());
    biasIds = params.logitBias().keySet().stream().mapToInt(Integer::intValue).sorted().toArray();
    biases = biases(params.logitBias(), biasIds);
    boolean repeats = params.repetitionPenalty() != 1;
    penalizes = repeats || params.frequencyPenalty() != 0 || params.presencePenalty() != 0;
    boolean followsWords = Arrays.stream(badWords).anyMatch(word -> word.length > 1);
    history = penalizes || followsWords ? new TokenHistory(repeats ? promptIds : new int[0]) : null;
  }

  private static BitSet bits(List<Integer> ids) {
    BitSet bits = new BitSet();
    ids.forEach(bits::set);
    return bits;
  }

  private static float[] biases(Map<Integer, Float> bias, int[] ids) {
    float[] values = new float[ids.length];
    for (int i = 0; i < ids.length; i++) {
      values[i] = bias.getOrDefault(ids[i], 0f);
    }
    return values;
  }

  /** False if {@link #apply} would leave every row for the output token behind {@code outputTokens} as it is. */
  boolean change(int outputTokens) {
    return allowed != null
        || badWords.length > 0
        || biasIds.length > 0
        || penalizes
        || (outputTokens < params.minTokens() && endTokenIds.length > 0);
  }

  /** Changes a row of logits for the output token behind {@code outputTokens}. */
  void apply(float[] row, int outputTokens) {
    if (history != null) {
      if (history.length() < outputTokens) {
        throw new IllegalStateException(
            "output token " + outputTokens + " is to be chosen, the sampler knows of " + history.length());
      }
      // Tokens that were sampled but thrown away by the scheduler are sampled again.
      history.truncate(outputTokens);
    }
    if (allowed != null) {
      keepAllowed(row, allowed);
    }
    for (int[] word : badWords) {
      if (word.length == 1 || (history != null && history.endsWith(word, word.length - 1))) {
        ruleOut(row, word[word.length - 1]);
      }
    }
    if (outputTokens < params.minTokens()) {
      for (int id : endTokenIds) {
        ruleOut(row, id);
      }
    }
    for (int i = 0; i < biasIds.length; i++) {
      if (biasIds[i] < row.length) {
        row[biasIds[i]] += biases[i];
      }
    }
    if (penalizes && history != null) {
      penalize(row, history);
    }
  }

  /** The token behind {@code outputTokens} has been chosen. */
  void chosen(int id) {
    if (history != null) {
      history.append(id);
    }
  }

  private static void keepAllowed(float[] row, BitSet allowed) {
    for (int id = 0; id < row.length; id++) {
      if (!allowed.get(id)) {
        row[id] = Float.NEGATIVE_INFINITY;
      }
    }
  }

  private static void ruleOut(float[] row, int id) {
    if (id >= 0 && id < row.length) {
      row[id] = Float.NEGATIVE_INFINITY;
    }
  }

  private void penalize(float[] row, TokenHistory tokens) {
    float repetition = params.repetitionPenalty();
    for (int place = 0; place < tokens.places(); place++) {
      int id = tokens.id(place);
      if (id < 0 || id >= row.length || !tokens.has(place)) {
        continue;
      }
      float logit = row[id];
      logit = logit > 0 ? logit / repetition : logit * repetition;
      int count = tokens.count(place);
      logit -= params.frequencyPenalty() * count;
      row[id] = count > 0 ? logit - params.presencePenalty() : logit;
    }
  }
}
