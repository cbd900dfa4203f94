package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Drafts that are right, wrong and nothing at all: the model's tokens and their distribution stay what they are. */
@Timeout(120)
class DraftVerificationTest {
  private static final int[] PROMPT = {17, 4, 99};
  private static final int KEPT = 3;
  private static final int DRAWS = 20_000;

  @TempDir Path folder;

  private ModelRig rig(int drafts) {
    Path model = new TinyModel(9, DType.F32).write(folder.resolve("model.gguf"));
    return new ModelRig(model, TestKernels.scalar(), ModelRig.Shape.f32(2).withDrafts(drafts));
  }

  /** Any drafts, also -1, which is never right: greedy tokens as without, in no more steps. */
  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5, 6})
  void greedyTokensAreThoseWithoutDrafts(long seed) {
    Random random = new Random(seed);
    int tokens = 60;
    int[] expected;
    try (ModelRig plain = rig(0)) {
      expected = plain.generate(PROMPT, tokens);
    }
    try (ModelRig rig = rig(4)) {
      Sequence sequence = rig.add("only", PROMPT, tokens);
      int steps = 0;
      int accepted = 0;
      while (sequence.isLive()) {
        StepPlan plan = rig.schedule();
        StepResult result = rig.runner().await(rig.runner().launch(plan));
        accepted += result.tokenCount(0) - 1;
        rig.update(plan, result);
        steps++;
        int[] drafts = new int[random.nextInt(5)];
        int right = random.nextInt(5);
        for (int i = 0; i < drafts.length; i++) {
          int at = sequence.outputLength() + i;
          drafts[i] = i < right && at < tokens ? expected[at] : random.nextInt(-1, TinyModel.VOCABULARY);
        }
        rig.setDrafts(sequence, drafts);
      }
      assertThat(ModelRig.output(sequence)).isEqualTo(expected);
      assertThat(accepted).isGreaterThan(20);
      assertThat(steps + accepted).isBetween(tokens, tokens + 4);
    }
  }

  /** The three tokens that top_k leaves behind a context, most probable first, and their probabilities. */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Choices(int[] ids, double[] probabilities) {
    static Choices of(float[] logits) {
      int[] ids =
          IntStream.range(0, logits.length)
              .boxed()
              .sorted((a, b) -> Float.compare(logits[b], logits[a]))
              .limit(KEPT)
              .mapToInt(Integer::intValue)
              .toArray();
      double[] weights = Arrays.stream(ids).mapToDouble(id -> Math.exp(logits[id] - logits[ids[0]])).toArray();
      double sum = Arrays.stream(weights).sum();
      return new Choices(ids, Arrays.stream(weights).map(weight -> weight / sum).toArray());
    }
  }

  private static Choices after(ModelRig plain, int... outputs) {
    int[] context = Arrays.copyOf(PROMPT, PROMPT.length + outputs.length);
    System.arraycopy(outputs, 0, context, PROMPT.length, outputs.length);
    plain.generate(context, 1);
    return Choices.of(plain.logits("only").getFirst());
  }

  /**
   * Three tokens drawn 20,000 times, the second and third as drafts: the 27 outcomes come as often as the product of
   * the probabilities along the way says, which are taken from runs without drafts.
   */
  @Test
  void drawnTokensHaveTheDistributionWithoutDrafts() {
    Map<List<Integer>, Double> expected = new HashMap<>();
    Map<Integer, int[]> drafts = new HashMap<>();
    try (ModelRig plain = rig(0)) {
      Choices first = after(plain);
      for (int i = 0; i < KEPT; i++) {
        int a = first.ids()[i];
        Choices second = after(plain, a);
        for (int j = 0; j < KEPT; j++) {
          int b = second.ids()[j];
          Choices third = after(plain, a, b);
          for (int k = 0; k < KEPT; k++) {
            double p = first.probabilities()[i] * second.probabilities()[j] * third.probabilities()[k];
            expected.put(List.of(a, b, third.ids()[k]), p);
          }
          if (j == 0) {
            drafts.put(a, new int[] {b, third.ids()[1]});
          }
        }
      }
    }
    Map<List<Integer>, Integer> counts = new HashMap<>();
    int bothAccepted = 0;
    try (ModelRig rig = rig(2)) {
      for (int seed = 0; seed < DRAWS; seed += 16) {
        List<Sequence> sequences = new ArrayList<>();
        for (int i = 0; i < 16; i++) {
          SamplingParams params =
              SamplingParams.builder().temperature(1).topK(KEPT).maxTokens(3).ignoreEos(true).seed(seed + i).build();
          sequences.add(rig.add("draw " + (seed + i), PROMPT, params));
        }
        while (sequences.stream().anyMatch(Sequence::isLive)) {
          StepPlan plan = rig.schedule();
          StepResult result = rig.runner().await(rig.runner().launch(plan));
          for (int i = 0; i < plan.numSequences(); i++) {
            bothAccepted += result.tokenCount(i) == 3 ? 1 : 0;
          }
          rig.update(plan, result);
          for (Sequence sequence : sequences) {
            if (sequence.isLive() && sequence.outputLength() == 1) {
              rig.setDrafts(sequence, Objects.requireNonNull(drafts.get(sequence.token(PROMPT.length))));
            }
          }
        }
        for (Sequence sequence : sequences) {
          counts.merge(Arrays.stream(ModelRig.output(sequence)).boxed().toList(), 1, Integer::sum);
        }
      }
    }
    assertThat(bothAccepted).isGreaterThan(DRAWS / 50);
    assertThat(expected.keySet()).containsAll(counts.keySet());
    double chiSquare = 0;
    for (Map.Entry<List<Integer>, Double> outcome : expected.entrySet()) {
      double often = outcome.getValue() * DRAWS;
      double off = counts.getOrDefault(outcome.getKey(), 0) - often;
      chiSquare += off * off / often;
    }
    // Mean f and variance 2 f for f degrees of freedom: four deviations above, less than one in ten thousand.
    int degrees = expected.size() - 1;
    assertThat(degrees).isEqualTo(KEPT * KEPT * KEPT - 1);
    assertThat(chiSquare).isLessThan(degrees + 4 * Math.sqrt(2.0 * degrees));
  }

  /** One random number an output position: the tokens of a seed do not depend on what was drafted. */
  @Test
  void drawnTokensOfASeedAreThoseWithoutDrafts() {
    SamplingParams params = SamplingParams.builder().temperature(1).topK(4).maxTokens(40).ignoreEos(true).build();
    for (long seed = 0; seed < 8; seed++) {
      int[] expected;
      try (ModelRig plain = rig(0)) {
        Sequence sequence = plain.add("plain", PROMPT, params.withSeed(seed));
        plain.finish();
        expected = ModelRig.output(sequence);
      }
      try (ModelRig rig = rig(3)) {
        Sequence sequence = rig.add("drafted", PROMPT, params.withSeed(seed));
        while (sequence.isLive()) {
          StepPlan plan = rig.schedule();
          rig.update(plan, rig.runner().await(rig.runner().launch(plan)));
          int at = sequence.outputLength();
          rig.setDrafts(sequence, new int[] {expected[Math.min(at, 39)], expected[Math.min(at + 1, 39)], 7});
        }
        assertThat(ModelRig.output(sequence)).as("seed %s", seed).isEqualTo(expected);
      }
    }
  }
}
