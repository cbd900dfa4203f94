package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Kernels;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Random models against the reference results that Hugging Face transformers gave for them in float32: plain, with
 * biases in every projection, and with both ways of scaling RoPE.
 */
class OracleModelTest {
  private static final double LOGIT_TOLERANCE = 5e-4;
  private static final double NORM_TOLERANCE = 1e-3;
  private static final int LONGEST_PROMPT_WITH_ALL_PREFIXES = 63;
  private static final int SAFE_TOKENS_WITH_HALF_CACHE = 8;

  @TempDir static Path folder;

  static Stream<Arguments> kernelsAndModels() {
    return TestKernels.with("llama-plain", "llama-bias", "llama-rope-linear", "llama-rope-llama3");
  }

  private static ModelRig rig(Kernels kernels, String model, ModelRig.Shape shape) {
    return new ModelRig(Golden.model("oracle/" + model + ".gguf", folder), kernels, shape);
  }

  private static JsonNode prompts(String model) {
    return Golden.resource("oracle/" + model + ".json").get("prompts");
  }

  @ParameterizedTest(name = "{0} {1}")
  @MethodSource("kernelsAndModels")
  void greedyIdsAndLogitsAreThoseOfTheReference(Kernels kernels, String model) {
    try (ModelRig rig = rig(kernels, model, ModelRig.Shape.f32(2))) {
      for (JsonNode prompt : prompts(model)) {
        int[] ids = Golden.ids(prompt.get("ids"));
        int[] expected = Golden.ids(prompt.get("greedy"));
        assertThat(rig.generate(ids, expected.length)).as("prompt of %s", ids.length).isEqualTo(expected);
        List<float[]> logits = rig.logits("only");
        double[] chosen = Golden.numbers(prompt.get("greedy_logits"));
        for (int i = 0; i < chosen.length; i++) {
          assertThat((double) logits.get(i)[expected[i]])
              .as("prompt of %s, step %s", ids.length, i)
              .isCloseTo(chosen[i], within(LOGIT_TOLERANCE));
        }
        checkLast(prompt.get("last"), logits.getFirst());
      }
    }
  }

  private static void checkLast(JsonNode last, float[] logits) {
    float[] sorted = logits.clone();
    Arrays.sort(sorted);
    double[] best = Golden.numbers(last.get("top10_logits"));
    for (int i = 0; i < best.length; i++) {
      assertThat((double) sorted[sorted.length - 1 - i]).as("best %s", i).isCloseTo(best[i], within(LOGIT_TOLERANCE));
    }
    int[] probes = Golden.ids(last.get("probe_ids"));
    double[] probed = Golden.numbers(last.get("probe_logits"));
    for (int i = 0; i < probes.length; i++) {
      assertThat((double) logits[probes[i]]).as("id %s", probes[i]).isCloseTo(probed[i], within(LOGIT_TOLERANCE));
    }
    double squares = 0;
    for (float logit : logits) {
      squares += (double) logit * logit;
    }
    double norm = last.get("l2").asDouble();
    assertThat(Math.sqrt(squares)).as("norm").isCloseTo(norm, within(NORM_TOLERANCE * norm));
  }

  @ParameterizedTest(name = "{0} {1}")
  @MethodSource("kernelsAndModels")
  void logProbabilitiesOfThePromptAreThoseOfTheReference(Kernels kernels, String model) {
    try (ModelRig rig = rig(kernels, model, ModelRig.Shape.f32(2))) {
      for (JsonNode prompt : prompts(model)) {
        int[] ids = Golden.ids(prompt.get("ids"));
        double[] expected = Golden.numbers(prompt.get("prompt_logprobs"));
        if (ids.length > LONGEST_PROMPT_WITH_ALL_PREFIXES) {
          continue;
        }
        for (int i = 0; i < expected.length; i++) {
          rig.add(ids.length + "/" + i, Arrays.copyOf(ids, i + 1), 1);
        }
        rig.finish();
        for (int i = 0; i < expected.length; i++) {
          float[] logits = rig.logits(ids.length + "/" + i).getFirst();
          assertThat(logProbability(logits, ids[i + 1]))
              .as("prompt of %s, position %s", ids.length, i)
              .isCloseTo(expected[i], within(LOGIT_TOLERANCE));
        }
      }
    }
  }

  private static double logProbability(float[] logits, int id) {
    double sum = 0;
    for (float logit : logits) {
      sum += Math.exp(logit);
    }
    return logits[id] - Math.log(sum);
  }

  @ParameterizedTest(name = "{0} {1}")
  @MethodSource("kernelsAndModels")
  void aCacheInHalfPrecisionGivesTheSameFirstIds(Kernels kernels, String model) {
    try (ModelRig rig = rig(kernels, model, ModelRig.Shape.f32(2).withKvType(DType.F16))) {
      for (JsonNode prompt : prompts(model)) {
        int[] expected = Arrays.copyOf(Golden.ids(prompt.get("greedy")), SAFE_TOKENS_WITH_HALF_CACHE);
        assertThat(rig.generate(Golden.ids(prompt.get("ids")), expected.length)).isEqualTo(expected);
      }
    }
  }
}
