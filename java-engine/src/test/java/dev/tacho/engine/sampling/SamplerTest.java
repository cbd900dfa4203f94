package dev.tacho.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.sun.management.ThreadMXBean;
import dev.tacho.engine.SamplingParams;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SamplerTest {
  private static final SamplingParams GREEDY = SamplingParams.greedy();
  private static final SamplingParams RANDOM = SamplingParams.builder().temperature(1).build();

  private static SamplerState state(SamplingParams params, long seed) {
    return new SamplerState(params, Set.of(), seed);
  }

  private static int sample(SamplingParams params, float... logits) {
    return new Sampler(logits.length).sample(MemorySegment.ofArray(logits), 0, state(params, 1), 0);
  }

  @Test
  void greedyTakesTheLowestIdAtATie() {
    assertThat(sample(GREEDY, 1, 5, 2, 5, 5)).isEqualTo(1);
    assertThat(sample(GREEDY, 0, 0, 0)).isEqualTo(0);
    assertThat(sample(GREEDY, -3, -1, -2)).isEqualTo(1);
  }

  @Test
  void readsItsOwnRow() {
    MemorySegment rows = MemorySegment.ofArray(new float[] {9, 0, 0, 0, 0, 7, 0, 8, 0});
    Sampler sampler = new Sampler(3);
    assertThat(sampler.sample(rows, 3, state(GREEDY, 1), 0)).isEqualTo(2);
    assertThat(sampler.sample(rows, 6, state(GREEDY, 1), 0)).isEqualTo(1);
  }

  @Test
  void nanIsNeverChosen() {
    float nan = Float.NaN;
    Sampler sampler = new Sampler(4);
    MemorySegment some = MemorySegment.ofArray(new float[] {nan, -7, nan, -8});
    MemorySegment all = MemorySegment.ofArray(new float[] {nan, nan, nan, nan});
    MemorySegment none = MemorySegment.ofArray(new float[] {1, 2, 3, 4});
    for (SamplingParams params :
        new SamplingParams[] {
          GREEDY, RANDOM, SamplingParams.builder().topK(2).topP(0.5).minP(0.1).logprobs(3).build()
        }) {
      SamplerState state = state(params, 3);
      for (int i = 0; i < 200; i++) {
        assertThat(sampler.sample(some, 0, state, i)).isIn(1, 3);
        assertThat(sampler.sawNan()).isTrue();
        assertThat(sampler.sample(all, 0, state, i)).isBetween(0, 3);
        assertThat(sampler.sawNan()).isTrue();
        sampler.sample(none, 0, state, 0);
        assertThat(sampler.sawNan()).isFalse();
      }
    }
  }

  @Test
  void infiniteLogitsAreDrawnFrom() {
    float inf = Float.POSITIVE_INFINITY;
    assertThat(sample(RANDOM, 1, inf, 2)).isEqualTo(1);
    assertThat(sample(RANDOM, -inf, -inf, 0)).isEqualTo(2);
    assertThat(sample(RANDOM, -inf, -inf, -inf)).isBetween(0, 2);
  }

  @Test
  void minTokensHoldsEndTokensBackUntilThen() {
    SamplingParams params =
        SamplingParams.builder().temperature(0).maxTokens(9).minTokens(3).stopTokenIds(List.of(1, 77)).build();
    SamplerState state = new SamplerState(params, Set.of(0), 1);
    Sampler sampler = new Sampler(4);
    MemorySegment row = MemorySegment.ofArray(new float[] {9, 8, 7, 6});
    assertThat(sampler.sample(row, 0, state, 0)).isEqualTo(2);
    assertThat(sampler.sample(row, 0, state, 2)).isEqualTo(2);
    assertThat(sampler.sample(row, 0, state, 3)).isEqualTo(0);
  }

  @Test
  void logprobsAreThoseOfTheRowAsItWas() {
    SamplingParams params =
        SamplingParams.builder().temperature(0).maxTokens(9).minTokens(1).logprobs(2).build();
    Sampler sampler = new Sampler(4);
    MemorySegment row = MemorySegment.ofArray(new float[] {3, 1, 2, 2});
    int id = sampler.sample(row, 0, new SamplerState(params, Set.of(0), 1), 0);
    assertThat(id).isEqualTo(2);
    TokenLogprobs logprobs = Objects.requireNonNull(sampler.logprobs());
    double logSum = Math.log(Math.exp(3) + Math.exp(1) + 2 * Math.exp(2));
    assertThat((double) logprobs.logprob()).isCloseTo(2 - logSum, within(1e-6));
    assertThat(logprobs.rank()).isEqualTo(2);
    assertThat(logprobs.topIds()).containsExactly(0, 2);
    assertThat((double) logprobs.topLogprobs()[0]).isCloseTo(3 - logSum, within(1e-6));
    sampler.sample(row, 0, state(GREEDY, 1), 0);
    assertThat(sampler.logprobs()).isNull();
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 20261129, -5})
  void drawsFollowTheDistribution(long seed) {
    Random random = new Random(seed);
    float[] logits = new float[40];
    for (int i = 0; i < logits.length; i++) {
      logits[i] = (float) random.nextGaussian() * 1.5f;
    }
    SamplingParams params = SamplingParams.builder().temperature(1.5).topK(25).topP(0.95).minP(0.02).build();
    Sampler sampler = new Sampler(logits.length);
    SamplerState state = state(params, seed);
    MemorySegment row = MemorySegment.ofArray(logits);
    int draws = 50_000;
    int[] counts = new int[logits.length];
    for (int i = 0; i < draws; i++) {
      counts[sampler.sample(row, 0, state, i)]++;
    }
    Candidates kept = sampler.distribution(1.5f, 0.02f, 25, 0.95f);
    double chiSquare = 0;
    int inside = 0;
    for (int i = 0; i < kept.size(); i++) {
      double expected = kept.probability(i) * draws;
      double off = counts[kept.id(i)] - expected;
      chiSquare += off * off / expected;
      inside += counts[kept.id(i)];
    }
    assertThat(inside).as("draws outside the kept ids").isEqualTo(draws);
    // Mean f and variance 2 f for f degrees of freedom: four deviations above, less than one in ten thousand.
    int degrees = kept.size() - 1;
    assertThat(degrees).isGreaterThan(5);
    assertThat(chiSquare).isLessThan(degrees + 4 * Math.sqrt(2.0 * degrees));
  }

  @Test
  void theSeedDecides() {
    float[] flat = new float[1000];
    MemorySegment row = MemorySegment.ofArray(flat);
    assertThat(draws(row, 42)).isEqualTo(draws(row, 42)).isNotEqualTo(draws(row, 43));
  }

  private static int[] draws(MemorySegment row, long seed) {
    Sampler sampler = new Sampler(1000);
    SamplerState state = state(RANDOM, seed);
    int[] ids = new int[20];
    Arrays.setAll(ids, i -> sampler.sample(row, 0, state, i));
    return ids;
  }

  @Test
  void badWordOfSeveralTokensIsKeptOutWhereItWouldBeComplete() {
    SamplerState state = new SamplerState(GREEDY, Set.of(), 1, new int[] {3, 3}, new int[][] {{3, 3, 1}, {0}});
    Sampler sampler = new Sampler(4);
    MemorySegment three = MemorySegment.ofArray(new float[] {9, 1, 2, 3});
    MemorySegment one = MemorySegment.ofArray(new float[] {9, 4, 2, 3});
    // The prompt does not count: its two 3 are no beginning of the word.
    assertThat(sampler.sample(one, 0, state, 0)).isEqualTo(1);
    assertThat(sampler.sample(three, 0, state, 1)).isEqualTo(3);
    assertThat(sampler.sample(one, 0, state, 2)).isEqualTo(1);
    assertThat(sampler.sample(three, 0, state, 3)).isEqualTo(3);
    assertThat(sampler.sample(three, 0, state, 4)).isEqualTo(3);
    assertThat(sampler.sample(one, 0, state, 5)).isEqualTo(3);
  }

  @Test
  void tokensThatWereThrownAwayAreNotPenalized() {
    SamplingParams params = GREEDY.toBuilder().frequencyPenalty(1).build();
    SamplerState state = state(params, 1);
    Sampler sampler = new Sampler(3);
    MemorySegment row = MemorySegment.ofArray(new float[] {5, 4.5f, 3.8f});
    assertThat(sampler.sample(row, 0, state, 0)).isEqualTo(0);
    assertThat(sampler.sample(row, 0, state, 1)).isEqualTo(1);
    assertThat(sampler.sample(row, 0, state, 1)).isEqualTo(1);
    assertThat(sampler.sample(row, 0, state, 2)).isEqualTo(0);
    assertThat(sampler.sample(row, 0, state, 0)).isEqualTo(0);
    assertThat(sampler.sample(row, 0, state, 1)).isEqualTo(1);
  }

  @Test
  void lostHistoryIsAnErrorAndNotAWrongPenalty() {
    SamplerState state = state(GREEDY.toBuilder().presencePenalty(1).build(), 1);
    MemorySegment row = MemorySegment.ofArray(new float[3]);
    assertThatThrownBy(() -> new Sampler(3).sample(row, 0, state, 2))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("knows of 0");
  }

  @Test
  void everyTokenOfALongHistoryIsCounted() {
    SamplingParams params = GREEDY.toBuilder().presencePenalty(2).repetitionPenalty(2).build();
    int vocab = 3000;
    int[] prompt = new int[1000];
    Arrays.setAll(prompt, i -> 2 * i);
    SamplerState state = new SamplerState(params, Set.of(), 1, prompt, new int[0][]);
    Sampler sampler = new Sampler(vocab);
    float[] flat = new float[vocab];
    Arrays.fill(flat, 1);
    MemorySegment row = MemorySegment.ofArray(flat);
    // 1 for those not seen, 1/2 for the prompt's, 1/2 - 2 for the output's: each is taken once, in order.
    int outputs = 0;
    for (int id = 0; id < vocab; id++) {
      if (id % 2 == 1 || id >= 2000) {
        assertThat(sampler.sample(row, 0, state, outputs++)).isEqualTo(id);
      }
    }
    for (int id = 0; id < 2000; id += 2) {
      assertThat(sampler.sample(row, 0, state, outputs++)).isEqualTo(id);
    }
  }

  @Test
  void allocatesNothing() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    float[] logits = new float[500];
    Random random = new Random(7);
    for (int i = 0; i < logits.length; i++) {
      logits[i] = random.nextFloat() * 10;
    }
    MemorySegment row = MemorySegment.ofArray(logits);
    Sampler sampler = new Sampler(logits.length);
    SamplerState[] states = {
      state(GREEDY, 1),
      state(RANDOM, 1),
      new SamplerState(
          SamplingParams.builder().topK(50).topP(0.9).minP(0.01).maxTokens(500).minTokens(400).build(), Set.of(3), 1),
      new SamplerState(
          RANDOM.toBuilder()
              .presencePenalty(0.5)
              .frequencyPenalty(0.1)
              .repetitionPenalty(1.1)
              .logitBias(Map.of(3, 2f, 90, -1f))
              .allowedTokenIds(IntStream.range(0, 300).boxed().toList())
              .build(),
          Set.of(3),
          1,
          new int[] {1, 2, 3},
          new int[][] {{5}, {6, 7}})
    };
    long least = Long.MAX_VALUE;
    // The first rounds run before the compiler has removed what does not escape.
    for (int round = 0; round < 40; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 100; i++) {
        for (SamplerState s : states) {
          sampler.sample(row, 0, s, i);
        }
      }
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }
    assertThat(least).isZero();
  }
}
