package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.engine.kernel.Kernels;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A trained model, stories260K, against a C++ reference. The model is not part of this repository: the folder comes
 * from {@code -Dtacho.stories}, or is {@code ../shared/models/stories260K} beside the checkout; without it the tests
 * say so and do not run.
 */
class StoriesGoldenTest {
  private static final double RELATIVE_TOLERANCE = 1e-3;

  /** How far the reference's own F16 run lies from its F32 run; two runs may lie on either side. */
  private static final double F16_SPREAD = 0.012;

  private final Path folder =
      Path.of(
          System.getProperty(
              "tacho.stories", System.getProperty("tacho.root", ".") + "/../shared/models/stories260K"));

  @BeforeEach
  void lookForTheModel() {
    assumeTrue(Files.isDirectory(folder), () -> "stories260K is not at " + folder + ": set -Dtacho.stories");
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("dev.tacho.engine.model.TestKernels#all")
  void f32IdsAreEqualAndTheTopFiveLogitsClose(Kernels kernels) {
    try (ModelRig rig = rig("stories260K-f32.gguf", kernels)) {
      for (JsonNode prompt : Golden.file(folder.resolve("golden-f32.json")).get("prompts")) {
        String text = prompt.get("prompt").asText();
        int[] expected = Golden.ids(prompt.get("greedy_ids"));
        assertThat(rig.generate(Golden.ids(prompt.get("prompt_ids")), expected.length)).as(text).isEqualTo(expected);
        Golden.assertTopLogits(prompt.get("top5_each_step"), rig.logits("only"), RELATIVE_TOLERANCE);
      }
    }
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("dev.tacho.engine.model.TestKernels#all")
  void f16IdsAreEqualWhereverTheMarginIsWiderThanTheSpread(Kernels kernels) {
    try (ModelRig rig = rig("stories260K-f16.gguf", kernels)) {
      for (JsonNode prompt : Golden.file(folder.resolve("golden-f16w.json")).get("prompts")) {
        String text = prompt.get("prompt").asText();
        int[] expected = Golden.ids(prompt.get("greedy_ids"));
        int[] found = rig.generate(Golden.ids(prompt.get("prompt_ids")), expected.length);
        JsonNode steps = prompt.get("top5_each_step");
        for (int step = 0; step < expected.length; step++) {
          double best = steps.get(step).get(0).get(1).asDouble();
          double second = steps.get(step).get(1).get(1).asDouble();
          float[] logits = rig.logits("only").get(step);
          assertThat(Math.abs(logits[expected[step]] - best)).as("%s, step %s", text, step).isLessThan(2 * F16_SPREAD);
          if (best - second > 4 * F16_SPREAD) {
            assertThat(found[step]).as("%s, step %s", text, step).isEqualTo(expected[step]);
          } else if (found[step] != expected[step]) {
            break;
          }
        }
      }
    }
  }

  private ModelRig rig(String file, Kernels kernels) {
    return new ModelRig(folder.resolve(file), kernels, ModelRig.Shape.f32(2));
  }
}
