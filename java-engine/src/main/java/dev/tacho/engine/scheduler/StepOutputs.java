package dev.tacho.engine.scheduler;

import dev.tacho.engine.sampling.TokenLogprobs;
import dev.tacho.metrics.event.FinishReason;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What a step delivers to the outside: for each sequence that got tokens or ended, in scheduling order, the tokens up
 * to a stop and the reason if it ended. Filled by the scheduler, reused; engine thread only.
 */
public final class StepOutputs {
  private int size;
  private @Nullable Sequence[] sequences = new @Nullable Sequence[16];
  private @Nullable FinishReason[] finishReasons = new @Nullable FinishReason[16];
  private int[] ends = new int[16];
  private int[] drafted = new int[16];
  private int[] accepted = new int[16];
  private int[] tokens = new int[16];
  private @Nullable TokenLogprobs[] logprobs = new @Nullable TokenLogprobs[16];

  /** Empties it; the scheduler does so at the beginning of each batch. */
  void reset() {
    Arrays.fill(logprobs, 0, numTokens(), null);
    Arrays.fill(sequences, 0, size, null);
    size = 0;
  }

  /** Opens an entry without tokens. */
  void add(Sequence sequence) {
    if (size == sequences.length) {
      sequences = Arrays.copyOf(sequences, size * 2);
      finishReasons = Arrays.copyOf(finishReasons, size * 2);
      ends = Arrays.copyOf(ends, size * 2);
      drafted = Arrays.copyOf(drafted, size * 2);
      accepted = Arrays.copyOf(accepted, size * 2);
    }
    ends[size] = numTokens();
    drafted[size] = 0;
    accepted[size] = 0;
    finishReasons[size] = null;
    sequences[size++] = sequence;
  }

  /** Adds a token to the entry opened last. */
  void addToken(int id, @Nullable TokenLogprobs tokenLogprobs) {
    int at = ends[size - 1]++;
    if (at == tokens.length) {
      tokens = Arrays.copyOf(tokens, at * 2);
      logprobs = Arrays.copyOf(logprobs, at * 2);
    }
    tokens[at] = id;
    logprobs[at] = tokenLogprobs;
  }

  /** Says how many drafts of the entry opened last were checked, and how many of them were right. */
  void drafts(int draftedTokens, int acceptedTokens) {
    drafted[size - 1] = draftedTokens;
    accepted[size - 1] = acceptedTokens;
  }

  /** Says why the sequence of the entry opened last ended. */
  void finish(FinishReason reason) {
    finishReasons[size - 1] = reason;
  }

  /** Entries. */
  public int size() {
    return size;
  }

  /** Tokens of all entries. */
  public int numTokens() {
    return size == 0 ? 0 : ends[size - 1];
  }

  /** Sequence of entry {@code i}. */
  public Sequence sequence(int i) {
    Sequence s = sequences[i];
    if (i >= size || s == null) {
      throw new IndexOutOfBoundsException("entry " + i + " of " + size);
    }
    return s;
  }

  /** Tokens of entry {@code i}; 0 if the sequence only ended. */
  public int tokenCount(int i) {
    return ends[i] - start(i);
  }

  /** Token {@code j} of entry {@code i}. */
  public int token(int i, int j) {
    return tokens[start(i) + j];
  }

  /** Log-probabilities of that token, or null if they were not asked for. */
  public @Nullable TokenLogprobs logprobs(int i, int j) {
    return logprobs[start(i) + j];
  }

  /** Drafts of entry {@code i} that were checked; 0 if it had none. */
  public int drafted(int i) {
    return drafted[i];
  }

  /** Drafts of entry {@code i} that were right. */
  public int accepted(int i) {
    return accepted[i];
  }

  /** Why the sequence of entry {@code i} ended, or null if it goes on. */
  public @Nullable FinishReason finishReason(int i) {
    return finishReasons[i];
  }

  /** The stop token (not end-of-text) that ended it, or {@link Sequence#NO_STOP_TOKEN}. */
  public int stopTokenId(int i) {
    return sequence(i).stopTokenId();
  }

  private int start(int i) {
    return i == 0 ? 0 : ends[i - 1];
  }
}
