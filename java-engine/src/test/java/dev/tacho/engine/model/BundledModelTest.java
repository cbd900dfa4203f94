package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.engine.kernel.Kernels;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The model that comes with Tacho and its quantised forms, against a float64 forward pass of the same files. */
class BundledModelTest {
  private static final Path ROOT = Path.of(System.getProperty("tacho.root", ".."));
  private static final Path FOLDER = ROOT.resolve("models/tacho-tales");
  private static final Path QUANTISED = ROOT.resolve("java-engine/src/test/resources/models");

  private static final double RELATIVE_TOLERANCE = 1e-3;

  static Stream<Arguments> kernelsAndFiles() {
    return TestKernels.with("", "-q8_0", "-q4_0");
  }

  @ParameterizedTest(name = "{0} tacho-tales{1}")
  @MethodSource("kernelsAndFiles")
  void greedyIdsAndTopLogitsAreThoseOfTheReference(Kernels kernels, String type) {
    Path model = (type.isEmpty() ? FOLDER : QUANTISED).resolve("tacho-tales" + type + ".gguf");
    try (ModelRig rig = new ModelRig(model, kernels, ModelRig.Shape.f32(2))) {
      for (JsonNode prompt : Golden.file(FOLDER.resolve("golden" + type + ".json")).get("prompts")) {
        String text = prompt.get("prompt").asText();
        int[] expected = Golden.ids(prompt.get("greedy_ids"));
        assertThat(rig.generate(Golden.ids(prompt.get("prompt_ids")), expected.length)).as(text).isEqualTo(expected);
        Golden.assertTopLogits(prompt.get("top5"), rig.logits("only"), RELATIVE_TOLERANCE);
      }
    }
  }
}
