package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Kernels;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A whole model with weights in blocks of 256 against one with the floats that they stand for. The two differ by the
 * rounding of activations to 8 bits, which moves logits by a part of their spread; a token whose logit leads by more
 * than that is the same.
 */
class KQuantModelTest {
  private static final long SEED = 20;
  private static final int PROMPTS = 8;
  private static final int TOKENS = 4;

  /** How far a logit may be off, in standard deviations of the row; 0.22 is the largest that was seen. */
  private static final double TOLERANCE = 0.25;

  @TempDir static Path folder;

  /** Which matrices have which type: all one, or two as in the files of mixed types that are usual. */
  enum Types {
    Q4_K,
    Q6_K,
    MIXED;

    DType of(String matrix) {
      return switch (this) {
        case Q4_K -> DType.Q4_K;
        case Q6_K -> DType.Q6_K;
        case MIXED -> matrix.matches("output.weight|.*(attn_v|ffn_down).weight") ? DType.Q6_K : DType.Q4_K;
      };
    }
  }

  static Stream<Arguments> kernelsWithTypes() {
    return TestKernels.with((Object[]) Types.values());
  }

  @ParameterizedTest(name = "{1}, {0}, seed " + SEED)
  @MethodSource("kernelsWithTypes")
  void idsAreThoseOfTheFloatsThatTheWeightsStandFor(Kernels kernels, Types types) {
    Path model = TinyModel.wide(SEED, types::of, false).write(folder.resolve(types + ".gguf"));
    Path floats = TinyModel.wide(SEED, types::of, true).write(folder.resolve(types + "-floats.gguf"));
    int compared = 0;
    try (ModelRig expected = new ModelRig(floats, kernels, ModelRig.Shape.f32(2));
        ModelRig rig = new ModelRig(model, kernels, ModelRig.Shape.f32(2))) {
      for (int i = 0; i < PROMPTS; i++) {
        int[] prompt = new Random(SEED + i).ints(5 + 3 * i, 0, TinyModel.VOCABULARY).toArray();
        int[] expectedIds = expected.generate(prompt, TOKENS);
        int[] ids = rig.generate(prompt, TOKENS);
        compared += compare(expected.logits("only"), expectedIds, rig.logits("only"), ids, "prompt " + i);
      }
    }
    assertThat(compared).as("tokens that lead clearly").isGreaterThanOrEqualTo(PROMPTS / 2);
  }

  /** Compares the rows up to the first token that differs, and the tokens that lead clearly; returns how many do. */
  private static int compare(
      List<float[]> expected, int[] expectedIds, List<float[]> actual, int[] ids, String description) {
    int compared = 0;
    for (int at = 0; at < TOKENS; at++) {
      double unit = TOLERANCE * deviation(expected.get(at));
      assertThat(largestDifference(expected.get(at), actual.get(at))).as("%s, row %d", description, at)
          .isLessThan(unit);
      if (lead(expected.get(at)) > 2 * unit) {
        assertThat(ids[at]).as("%s, token %d", description, at).isEqualTo(expectedIds[at]);
        compared++;
      }
      if (ids[at] != expectedIds[at]) {
        break;
      }
    }
    return compared;
  }

  private static double largestDifference(float[] a, float[] b) {
    double largest = 0;
    for (int i = 0; i < a.length; i++) {
      largest = Math.max(largest, Math.abs((double) a[i] - b[i]));
    }
    return largest;
  }

  private static double deviation(float[] row) {
    double squares = 0;
    double sum = 0;
    for (float value : row) {
      sum += value;
      squares += (double) value * value;
    }
    double mean = sum / row.length;
    return Math.sqrt(squares / row.length - mean * mean);
  }

  /** By how much the highest leads the next. */
  private static double lead(float[] row) {
    float[] sorted = row.clone();
    Arrays.sort(sorted);
    return (double) sorted[row.length - 1] - sorted[row.length - 2];
  }
}
