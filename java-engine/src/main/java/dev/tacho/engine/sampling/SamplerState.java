package dev.tacho.engine.sampling;

import dev.tacho.engine.SamplingParams;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * What sampling keeps of one sequence from step to step: its parameters, the tokens that they look back at, and its
 * random numbers. Used by one thread at a time, the worker that samples the sequence's rows.
 */
public final class SamplerState {
  private final SamplingParams params;
  private final Set<Integer> eosTokenIds;
  private final LogitsProcessors processors;
  private final long seed;

  /**
   * A state for parameters without bad words, and without a repetition penalty for the prompt.
   *
   * @param params of the request
   * @param eosTokenIds end-of-text ids of the model
   * @param seed of this sequence: seed + i for child i
   */
  public SamplerState(SamplingParams params, Set<Integer> eosTokenIds, long seed) {
    this(params, eosTokenIds, seed, new int[0], new int[0][]);
  }

  /**
   * A state.
   *
   * @param params of the request
   * @param eosTokenIds end-of-text ids of the model
   * @param seed of this sequence: seed + i for child i
   * @param promptIds the prompt; not kept
   * @param badWords for each word that the output must not have its ids, at least one; kept
   */
  public SamplerState(
      SamplingParams params, Set<Integer> eosTokenIds, long seed, int[] promptIds, int[][] badWords) {
    this.params = Objects.requireNonNull(params);
    this.eosTokenIds = Set.copyOf(eosTokenIds);
    int[] endTokenIds =
        IntStream.concat(
                this.eosTokenIds.stream().mapToInt(Integer::intValue),
                params.stopTokenIds().stream().mapToInt(Integer::intValue))
            .toArray();
    processors = new LogitsProcessors(params, endTokenIds, promptIds, badWords);
    this.seed = seed;
  }

  /** The request's parameters. */
  public SamplingParams params() {
    return params;
  }

  /** End-of-text ids of the model. */
  public Set<Integer> eosTokenIds() {
    return eosTokenIds;
  }

  /** What is done to the sequence's logits. */
  LogitsProcessors processors() {
    return processors;
  }

  /**
   * True if nothing is done to the logits of the output token at a place, so that their largest is the one to begin
   * with.
   *
   * @param outputTokens place in the output, from 0
   */
  public boolean takesMaximum(int outputTokens) {
    return !processors.change(outputTokens);
  }

  /** 64 random bits of the output token at a place, from 0: SplitMix64, entered at any point. */
  private long bits(int outputToken) {
    long z = seed + (outputToken + 1L) * 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  /**
   * The random number in [0, 1), a multiple of 2^-53, that decides the output token at a place. It depends on the seed
   * and the place alone, so that a token which is sampled again, as a draft or after a step whose output was thrown
   * away, comes out the same.
   *
   * @param outputToken place in the output, from 0
   */
  double uniform(int outputToken) {
    return (bits(outputToken) >>> 11) * 0x1.0p-53;
  }
}
