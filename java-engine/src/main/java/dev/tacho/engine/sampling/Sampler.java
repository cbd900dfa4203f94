package dev.tacho.engine.sampling;

import dev.tacho.engine.SamplingParams;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/**
 * Chooses a token from a row of logits: the request's processors (bans, bias, penalties), then greedy or temperature,
 * min_p, top_k, top_p and a draw with the sequence's own random numbers. Log-probabilities are those of the row before
 * all that. One a worker: it owns scratch memory of the size of the vocabulary and is used by one thread at a time. It
 * allocates nothing unless log-probabilities are asked for, but for the growth of a sequence's history.
 *
 * <p>The result depends on the row, the parameters and the state alone. A NaN counts as minus infinity, so the id is
 * always in range; {@link #sawNan()} tells of it.
 */
public final class Sampler {
  private final int vocabSize;
  private final float[] row;
  private final RowMaxima maximum = new RowMaxima(1);
  private final Candidates candidates;
  private @Nullable TokenLogprobs logprobs;
  private boolean sawNan;

  /**
   * @param vocabSize elements of a row of logits
   */
  public Sampler(int vocabSize) {
    if (vocabSize < 1) {
      throw new IllegalArgumentException("vocabulary of " + vocabSize + " tokens");
    }
    this.vocabSize = vocabSize;
    row = new float[vocabSize];
    candidates = new Candidates(vocabSize);
  }

  /**
   * Chooses a token.
   *
   * @param logits f32, at least {@code firstElement + vocabSize} elements
   * @param firstElement where the row begins
   * @param state of the sequence; it learns of the token; a draw advances its random numbers, greedy does not
   * @param outputTokens output tokens that the sequence has so far; fewer than were chosen if some were thrown away
   * @return an id in [0, vocabSize)
   */
  public int sample(MemorySegment logits, long firstElement, SamplerState state, int outputTokens) {
    maximum.clear(0);
    maximum.fold(0, logits, firstElement, 0, vocabSize);
    return sample(logits, firstElement, state, outputTokens, maximum, 0);
  }

  /**
   * The same for a row whose largest logit is known.
   *
   * @param maxima of the rows; read only if {@link SamplerState#takesMaximum} says so
   * @param number of the row among them
   */
  public int sample(
      MemorySegment logits, long firstElement, SamplerState state, int outputTokens, RowMaxima maxima, int number) {
    SamplingParams params = state.params();
    boolean asTheyAre = state.takesMaximum(outputTokens);
    int id;
    if (asTheyAre && params.isGreedy()) {
      sawNan = maxima.sawNan(number);
      id = maxima.id(number);
    } else {
      read(logits, firstElement);
      state.processors().apply(row, outputTokens);
      int best = asTheyAre ? maxima.id(number) : argmax();
      id = params.isGreedy() ? best : draw(best, params, state.uniform(outputTokens));
    }
    state.processors().chosen(id);
    logprobs = null;
    if (params.logprobs() >= 0) {
      // The processors have changed the row; what is reported comes from the logits as they were.
      read(logits, firstElement);
      logprobs = RawLogprobs.of(row, id, params.logprobs());
    }
    return id;
  }

  /** Log-probabilities of the token chosen last, or null if its parameters do not ask for them. */
  public @Nullable TokenLogprobs logprobs() {
    return logprobs;
  }

  /** True if the row of the token chosen last held a NaN. */
  public boolean sawNan() {
    return sawNan;
  }

  private int draw(int best, SamplingParams params, double point) {
    candidates.select(row, best, params.temperature(), params.minP(), params.topK(), params.topP());
    return candidates.at(point);
  }

  /** What these parameters leave of the row that was read last; valid until the next token is chosen. */
  Candidates distribution(float temperature, float minP, int topK, float topP) {
    candidates.select(row, argmax(), temperature, minP, topK, topP);
    return candidates;
  }

  private void read(MemorySegment logits, long firstElement) {
    MemorySegment.copy(logits, ValueLayout.JAVA_FLOAT, firstElement * Float.BYTES, row, 0, vocabSize);
    sawNan = false;
    for (int i = 0; i < row.length; i++) {
      if (Float.isNaN(row[i])) {
        row[i] = Float.NEGATIVE_INFINITY;
        sawNan = true;
      }
    }
  }

  /** The largest logit's id, the lowest at a tie; 0 if all are minus infinity. */
  private int argmax() {
    int best = 0;
    for (int i = 1; i < row.length; i++) {
      if (row[i] > row[best]) {
        best = i;
      }
    }
    return best;
  }
}
