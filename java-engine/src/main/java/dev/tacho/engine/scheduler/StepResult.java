package dev.tacho.engine.scheduler;

import dev.tacho.engine.sampling.TokenLogprobs;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What a step gave: for each sequence of its plan the sampled tokens, in order (none for a sequence in the middle of
 * its prompt). Filled by the runner, read by the engine thread; reused.
 */
public final class StepResult {
  private int numSequences;
  private int[] starts = new int[17];
  private int[] tokens = new int[16];
  private @Nullable TokenLogprobs[] logprobs = new @Nullable TokenLogprobs[16];
  private boolean anyLogprobs;
  private boolean[] nan = new boolean[16];
  private long gapNanos;

  /** Empties the result. */
  public void reset() {
    if (anyLogprobs) {
      Arrays.fill(logprobs, 0, starts[numSequences], null);
      anyLogprobs = false;
    }
    numSequences = 0;
    gapNanos = 0;
    starts[0] = 0;
  }

  /** Opens the next sequence of the plan, which has no token yet. */
  public void nextSequence() {
    numSequences++;
    if (numSequences + 1 > starts.length) {
      starts = Arrays.copyOf(starts, starts.length * 2);
    }
    starts[numSequences] = starts[numSequences - 1];
    if (numSequences > nan.length) {
      nan = Arrays.copyOf(nan, nan.length * 2);
    }
    nan[numSequences - 1] = false;
  }

  /** Adds a token to the sequence opened last. */
  public void addToken(int id, @Nullable TokenLogprobs tokenLogprobs) {
    int at = starts[numSequences]++;
    if (at == tokens.length) {
      tokens = Arrays.copyOf(tokens, at * 2);
      logprobs = Arrays.copyOf(logprobs, at * 2);
    }
    tokens[at] = id;
    if (tokenLogprobs != null) {
      logprobs[at] = tokenLogprobs;
      anyLogprobs = true;
    }
  }

  /** Says that a token of the sequence opened last comes from logits with a NaN among them. */
  public void markNan() {
    nan[numSequences - 1] = true;
  }

  /** Says how long the workers had no step before this one. */
  public void setGapNanos(long nanos) {
    gapNanos = nanos;
  }

  /** Sequences, as in the plan. */
  public int numSequences() {
    return numSequences;
  }

  /** Tokens of sequence {@code i}. */
  public int tokenCount(int i) {
    return starts[i + 1] - starts[i];
  }

  /** Token {@code j} of sequence {@code i}. */
  public int token(int i, int j) {
    return tokens[starts[i] + j];
  }

  /** Log-probabilities of that token, or null if they were not asked for. */
  public @Nullable TokenLogprobs logprobs(int i, int j) {
    return logprobs[starts[i] + j];
  }

  /** True if a token of sequence {@code i} comes from logits with a NaN among them. */
  public boolean hasNan(int i) {
    return nan[i];
  }

  /** Nanoseconds for which the workers had no step between the one before and this one. */
  public long gapNanos() {
    return gapNanos;
  }
}
