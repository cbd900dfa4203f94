package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.scheduler.Sequence;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A sequence's result is its own: neither the rest of the batch, nor the chunks of its prompt, nor the number of
 * threads changes a bit of its logits.
 */
class LlamaRunnerInvarianceTest {
  private static final int SEED = 7;

  @TempDir static Path folder;

  static Stream<Arguments> kernelsAndTypes() {
    return TestKernels.with(
        Stream.of(DType.values()).filter(dtype -> TinyModel.EMBEDDING % dtype.blockElements() == 0).toArray());
  }

  private static ModelRig rig(Kernels kernels, DType dtype, ModelRig.Shape shape) {
    return new ModelRig(new TinyModel(SEED, dtype).write(folder.resolve(dtype + ".gguf")), kernels, shape);
  }

  private static int[] prompt(long seed, int length) {
    return new Random(seed).ints(length, 0, TinyModel.VOCABULARY).toArray();
  }

  @ParameterizedTest(name = "{0} {1}")
  @MethodSource("kernelsAndTypes")
  void userCase21EightIdenticalSequencesGiveTheBitsOfOneAlone(Kernels kernels, DType dtype) {
    int[] prompt = prompt(1, 21);
    try (ModelRig rig = rig(kernels, dtype, ModelRig.Shape.f32(2))) {
      int[] alone = rig.generate(prompt, 12);
      List<float[]> logitsAlone = List.copyOf(rig.logits("only"));
      List<Sequence> together = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        together.add(rig.add("copy " + i, prompt, 12));
      }
      rig.finish();
      for (Sequence sequence : together) {
        assertThat(ModelRig.output(sequence)).as(sequence.requestId()).isEqualTo(alone);
        assertThat(rig.logits(sequence.requestId())).as(sequence.requestId()).containsExactlyElementsOf(logitsAlone);
      }
    }
  }

  @ParameterizedTest(name = "{0} {1}")
  @MethodSource("kernelsAndTypes")
  void aPromptInChunksGivesTheBitsOfOnePiece(Kernels kernels, DType dtype) {
    int[] prompt = prompt(2, 300);
    List<float[]> whole = logitsOf(kernels, dtype, ModelRig.Shape.f32(2), prompt);
    for (int chunk : new int[] {32, 7}) {
      List<float[]> chunked =
          logitsOf(
              kernels, dtype, ModelRig.Shape.f32(2).withMaxTokens(chunk).withMaxSequences(Math.min(chunk, 4)), prompt);
      assertThat(chunked).as("chunks of %s", chunk).containsExactlyElementsOf(whole);
    }
  }

  @ParameterizedTest(name = "{0} {1}")
  @MethodSource("kernelsAndTypes")
  void theNumberOfThreadsChangesNoBit(Kernels kernels, DType dtype) {
    int[] prompt = prompt(3, 45);
    List<float[]> one = logitsOf(kernels, dtype, ModelRig.Shape.f32(1), prompt);
    for (int threads : new int[] {2, 3, 7}) {
      assertThat(logitsOf(kernels, dtype, ModelRig.Shape.f32(threads), prompt))
          .as("%s threads", threads)
          .containsExactlyElementsOf(one);
    }
  }

  @ParameterizedTest(name = "{0} {1}")
  @MethodSource("kernelsAndTypes")
  void prefillOfOthersBesideADecodeChangesNoBit(Kernels kernels, DType dtype) {
    int[] prompt = prompt(4, 19);
    try (ModelRig rig = rig(kernels, dtype, ModelRig.Shape.f32(2).withMaxTokens(48).withMaxSequences(6))) {
      rig.generate(prompt, 16);
      List<float[]> alone = List.copyOf(rig.logits("only"));
      rig.add("decoding", prompt, 16);
      rig.step();
      rig.step();
      for (int i = 0; i < 4; i++) {
        rig.add("late " + i, prompt(10 + i, 30 + 40 * i), SamplingParams.builder().temperature(1).seed(i).build());
        rig.step();
      }
      rig.finish();
      assertThat(rig.logits("decoding")).containsExactlyElementsOf(alone);
    }
  }

  @ParameterizedTest(name = "{0} {1}")
  @MethodSource("kernelsAndTypes")
  void seededSamplingDependsOnTheSeedAlone(Kernels kernels, DType dtype) {
    SamplingParams params = SamplingParams.builder().temperature(0.9).topP(0.95).seed(42).maxTokens(20).build();
    int[] prompt = prompt(5, 9);
    try (ModelRig rig = rig(kernels, dtype, ModelRig.Shape.f32(3))) {
      Sequence alone = rig.add("alone", prompt, params);
      rig.finish();
      Sequence again = rig.add("again", prompt, params);
      Sequence other = rig.add("other", prompt, params.withSeed(43));
      rig.finish();
      assertThat(ModelRig.output(again)).isEqualTo(ModelRig.output(alone));
      assertThat(ModelRig.output(other)).isNotEqualTo(ModelRig.output(alone));
    }
  }

  private static List<float[]> logitsOf(Kernels kernels, DType dtype, ModelRig.Shape shape, int[] prompt) {
    try (ModelRig rig = rig(kernels, dtype, shape)) {
      rig.generate(prompt, 8);
      return rig.logits("only");
    }
  }
}
