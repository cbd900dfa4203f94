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
  // What is told of a sequence stands together: entry i begins at i * STRIDE.
  private static final int STRIDE = 4;
  private static final int PLACE = 0;
  private static final int END = 1;
  private static final int DRAFTED = 2;
  private static final int ACCEPTED = 3;

  private int size;
  private int[] entries = new int[16 * STRIDE];
  // Those of the step's plan, by their places.
  private @Nullable Sequence[] sequences = new @Nullable Sequence[16];
  private int numPlaces;
  private @Nullable FinishReason[] finishReasons = new @Nullable FinishReason[16];
  private boolean anyFinished;
  private int[] tokens = new int[16];
  private @Nullable TokenLogprobs[] logprobs = new @Nullable TokenLogprobs[16];
  private boolean anyLogprobs;

  /** Empties it for the output of a step; the scheduler does so at the beginning of each batch. */
  void reset(StepPlan plan) {
    if (anyLogprobs) {
      Arrays.fill(logprobs, 0, numTokens(), null);
      anyLogprobs = false;
    }
    if (anyFinished) {
      Arrays.fill(finishReasons, 0, size, null);
      anyFinished = false;
    }
    size = 0;
    PlacedSequences placed = plan.placed();
    sequences = placed.copySequences(sequences);
    if (placed.end() < numPlaces) {
      Arrays.fill(sequences, placed.end(), Math.min(numPlaces, sequences.length), null);
    }
    numPlaces = placed.end();
  }

  /** Opens an entry without tokens for the sequence at a place of the plan. */
  void add(int place) {
    int at = size * STRIDE;
    if (at == entries.length) {
      entries = Arrays.copyOf(entries, at * 2);
      finishReasons = Arrays.copyOf(finishReasons, size * 2);
    }
    entries[at + PLACE] = place;
    entries[at + END] = numTokens();
    entries[at + DRAFTED] = 0;
    entries[at + ACCEPTED] = 0;
    size++;
  }

  /** Adds a token to the entry opened last. */
  void addToken(int id, @Nullable TokenLogprobs tokenLogprobs) {
    int at = entries[(size - 1) * STRIDE + END]++;
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

  /** Says how many drafts of the entry opened last were checked, and how many of them were right. */
  void drafts(int draftedTokens, int acceptedTokens) {
    entries[(size - 1) * STRIDE + DRAFTED] = draftedTokens;
    entries[(size - 1) * STRIDE + ACCEPTED] = acceptedTokens;
  }

  /** Says why the sequence of the entry opened last ended. */
  void finish(FinishReason reason) {
    finishReasons[size - 1] = reason;
    anyFinished = true;
  }

  /** Entries. */
  public int size() {
    return size;
  }

  /** Tokens of all entries. */
  public int numTokens() {
    return start(size);
  }

  /** Sequence of entry {@code i}. */
  public Sequence sequence(int i) {
    Sequence s = i < size ? sequences[entries[i * STRIDE + PLACE]] : null;
    if (s == null) {
      throw new IndexOutOfBoundsException("entry " + i + " of " + size);
    }
    return s;
  }

  /** Tokens of entry {@code i}; 0 if the sequence only ended. */
  public int tokenCount(int i) {
    return start(i + 1) - start(i);
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
    return entries[i * STRIDE + DRAFTED];
  }

  /** Drafts of entry {@code i} that were right. */
  public int accepted(int i) {
    return entries[i * STRIDE + ACCEPTED];
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
    return i == 0 ? 0 : entries[(i - 1) * STRIDE + END];
  }
}
