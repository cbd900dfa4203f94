package dev.tacho.engine.sampling;

import dev.tacho.engine.SamplingParams;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * What sampling keeps of one sequence from step to step: its parameters and its random numbers. Used by one thread at a
 * time, the worker that samples the sequence's row.
 */
public final class SamplerState {
  private final SamplingParams params;
  private final Set<Integer> eosTokenIds;
  private final int[] endTokenIds;
  private long randomState;

  /**
   * @param params of the request
   * @param eosTokenIds end-of-text ids of the model
   * @param seed of this sequence: seed + i for child i
   */
  public SamplerState(SamplingParams params, Set<Integer> eosTokenIds, long seed) {
    this.params = Objects.requireNonNull(params);
    this.eosTokenIds = Set.copyOf(eosTokenIds);
    this.endTokenIds =
        IntStream.concat(
                this.eosTokenIds.stream().mapToInt(Integer::intValue),
                params.stopTokenIds().stream().mapToInt(Integer::intValue))
            .toArray();
    this.randomState = seed;
  }

  /** The request's parameters. */
  public SamplingParams params() {
    return params;
  }

  /** End-of-text ids of the model. */
  public Set<Integer> eosTokenIds() {
    return eosTokenIds;
  }

  /** End-of-text and stop ids, which {@code min_tokens} holds back; not a copy. */
  int[] endTokenIds() {
    return endTokenIds;
  }

  /** The next 64 random bits (SplitMix64). */
  long nextLong() {
    randomState += 0x9E3779B97F4A7C15L;
    long z = randomState;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  /** The next random number in [0, 1), a multiple of 2^-53. */
  double nextDouble() {
    return (nextLong() >>> 11) * 0x1.0p-53;
  }
}
