package dev.tacho.engine.model;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.parallel.WorkerTeam;
import dev.tacho.metrics.perf.ModelShape;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tensors against the config, and the life of the packed memory. */
class WeightsTest {
  private static final int Q5_K = 13;

  @TempDir Path folder;
  private final Kernels kernels = TestKernels.scalar();
  private final WorkerTeam team = new WorkerTeam("weights", 2);

  @AfterEach
  void closeTeam() {
    team.close();
  }

  private static TinyModel model() {
    return new TinyModel(1, DType.F32);
  }

  private Path write(TinyModel model) {
    return model.write(folder.resolve("model.gguf"));
  }

  private Weights load(TinyModel model) {
    try (GgufFile file = GgufFile.open(write(model))) {
      return Weights.load(file, ModelConfig.of(file), kernels, team, (loaded, total, source) -> {});
    }
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(value = DType.class, mode = EnumSource.Mode.EXCLUDE, names = {"Q4_K", "Q6_K"}) // its rows are short
  void rowsOfTheEmbeddingTableAreThoseOfTheFile(DType dtype) {
    Path path = write(new TinyModel(2, dtype));
    try (GgufFile file = GgufFile.open(path);
        Weights weights = Weights.load(file, ModelConfig.of(file), kernels, team, (loaded, total, source) -> {});
        Arena arena = Arena.ofConfined()) {
      MemorySegment table = file.data(file.tensor("token_embd.weight"));
      MemorySegment ids = arena.allocateFrom(JAVA_INT, 199, 0, 17);
      MemorySegment rows = arena.allocate(JAVA_FLOAT, 3L * TinyModel.EMBEDDING);
      kernels.embeddingLookup(
          weights.tokenEmbedding(), ids, 3, rows, TinyModel.EMBEDDING, 0, 3, new KernelWorker(arena, 0));
      for (int row = 0; row < 3; row++) {
        int id = ids.getAtIndex(JAVA_INT, row);
        for (int column = 0; column < TinyModel.EMBEDDING; column++) {
          long element = (long) id * TinyModel.EMBEDDING + column;
          assertThat(rows.getAtIndex(JAVA_FLOAT, (long) row * TinyModel.EMBEDDING + column))
              .as("row %s column %s", id, column)
              .isEqualTo(Elements.get(dtype, table, 0, element));
        }
      }
    }
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(value = DType.class, names = {"F32", "F16", "BF16"})
  void vectorsAreWidened(DType dtype) {
    Path path = write(model().vector("output_norm.weight", dtype, TinyModel.EMBEDDING));
    try (GgufFile file = GgufFile.open(path);
        Weights weights = Weights.load(file, ModelConfig.of(file), kernels, team, (loaded, total, source) -> {})) {
      MemorySegment source = file.data(file.tensor("output_norm.weight"));
      for (int i = 0; i < TinyModel.EMBEDDING; i++) {
        assertThat(weights.outputNorm().getAtIndex(JAVA_FLOAT, i)).isEqualTo(Elements.get(dtype, source, 0, i));
      }
    }
  }

  @Test
  void theRequiredBytesAreThoseThatAreTaken() {
    try (GgufFile file = GgufFile.open(write(model()))) {
      ModelConfig config = ModelConfig.of(file);
      long required = Weights.requiredBytes(file, config, kernels);
      List<Long> progress = new ArrayList<>();
      try (Weights weights = Weights.load(file, config, kernels, team, (loaded, total, source) -> {
        assertThat(total).isEqualTo(required);
        progress.add(loaded);
      })) {
        assertThat(weights.bytes()).isEqualTo(required);
      }
      long floats =
          2L * TinyModel.VOCABULARY * TinyModel.EMBEDDING
              + TinyModel.LAYERS
                  * (TinyModel.EMBEDDING * (64L + 32 + 32 + 64 + 3 * TinyModel.FEED_FORWARD) + 2 * TinyModel.EMBEDDING)
              + TinyModel.EMBEDDING;
      assertThat(required).isBetween(floats * Float.BYTES, floats * Float.BYTES * 11 / 10);
      assertThat(progress).hasSize(file.tensors().size()).isSorted();
    }
  }

  @Test
  void withoutAnOutputMatrixTheEmbeddingTableServes() {
    try (Weights weights = load(model().without("output.weight"))) {
      assertThat(weights.output().weight()).isSameAs(weights.tokenEmbedding());
    }
  }

  @ParameterizedTest(name = "{0}: {1} bytes")
  @CsvSource({"F32, 4", "F16, 2", "BF16, 2", "Q8_0, 1", "Q4_0, 0.5"})
  void theShapeForTheWorkEstimateIsThatOfTheModel(DType dtype, double weightBytes) {
    try (Weights weights = load(new TinyModel(1, dtype).number("llama.attention.sliding_window", 128))) {
      assertThat(weights.shape(DType.F16))
          .isEqualTo(
              ModelShape.dense(
                      TinyModel.LAYERS,
                      TinyModel.EMBEDDING,
                      TinyModel.HEADS,
                      TinyModel.KV_HEADS,
                      TinyModel.HEAD_DIM,
                      TinyModel.FEED_FORWARD,
                      TinyModel.VOCABULARY,
                      4,
                      weightBytes,
                      2)
                  .withSlidingWindow(128, TinyModel.LAYERS));
    }
  }

  @Test
  void theFileMayShrinkOnceItIsLoaded() throws IOException {
    Weights weights = load(model());
    Path path = folder.resolve("model.gguf");
    try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
      file.setLength(10);
    }
    Files.delete(path);
    try (weights;
        Arena arena = Arena.ofConfined()) {
      MemorySegment row = arena.allocate(JAVA_FLOAT, TinyModel.EMBEDDING);
      MemorySegment ids = arena.allocateFrom(JAVA_INT, TinyModel.VOCABULARY - 1);
      kernels.embeddingLookup(
          weights.output().weight(), ids, 1, row, TinyModel.EMBEDDING, 0, 1, new KernelWorker(arena, 0));
      assertThat(row.toArray(JAVA_FLOAT)).doesNotContain(Float.NaN);
    }
  }

  @ParameterizedTest(name = "without {0}")
  @CsvSource({"blk.1.ffn_down.weight", "blk.0.attn_norm.weight", "output_norm.weight"})
  void aMissingTensorIsNamed(String name) {
    assertThatThrownBy(() -> load(model().without(name)))
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining(name);
  }

  @Test
  void anotherShapeNamesTensorExpectedAndFound() {
    String name = "blk.1.attn_k.weight";
    assertThatThrownBy(() -> load(model().matrix(name, 64, 64)))
        .isInstanceOfSatisfying(
            ModelFormatException.class,
            fault -> {
              assertThat(fault.field()).contains(name);
              assertThat(fault.expected()).contains("[64, 32]");
              assertThat(fault.found()).isEqualTo("[64, 64]");
            });
  }

  @Test
  void aTransposedMatrixIsAFault() {
    assertThatThrownBy(() -> load(model().matrix("blk.0.ffn_down.weight", TinyModel.FEED_FORWARD, TinyModel.EMBEDDING)))
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining("blk.0.ffn_down.weight");
  }

  @Test
  void aBiasOfAnotherLengthIsAFault() {
    assertThatThrownBy(() -> load(model().vector("blk.0.attn_q.bias", DType.F32, 60)))
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining("blk.0.attn_q.bias");
  }

  @ParameterizedTest(name = "{0}")
  @ValueSource(floats = {0, -1, Float.NaN, Float.POSITIVE_INFINITY})
  void aRopeFactorThatIsNoPositiveNumberIsAFault(float factor) {
    ByteBuffer content = ByteBuffer.wrap(new byte[8 * Float.BYTES]).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < 8; i++) {
      content.putFloat(i == 5 ? factor : 1);
    }
    assertThatThrownBy(() -> load(model().tensor("rope_freqs.weight", DType.F32.id(), content.array(), 8)))
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining("element 5 of tensor rope_freqs.weight");
  }

  @Test
  void userCase22AnUnsupportedTensorTypeNamesTensorAndType() {
    byte[] superBlock = new byte[64 * 176];
    TinyModel model =
        model()
            .number("llama.feed_forward_length", 256)
            .tensor("blk.0.ffn_down.weight", Q5_K, superBlock, 256, 64)
            .matrix("blk.0.ffn_gate.weight", 256, 64)
            .matrix("blk.0.ffn_up.weight", 256, 64);
    assertThatThrownBy(() -> load(model))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("blk.0.ffn_down.weight")
        .hasMessageContaining("Q5_K")
        .hasMessageContaining("Q8_0");
  }

  @Test
  void aTensorThatNothingReadsIsUnsupported() {
    assertThatThrownBy(() -> load(model().vector("blk.0.attn_q_norm.weight", DType.F32, 16)))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("blk.0.attn_q_norm.weight");
  }

  @Test
  void aLayerMoreThanTheConfigSaysIsUnsupported() {
    assertThatThrownBy(() -> load(model().number("llama.block_count", 1)))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("blk.1.");
  }

  @Test
  void theMemoryLivesUntilTheLastReferenceIsGivenBack() {
    Weights weights = load(model());
    assertThat(weights.retain()).isSameAs(weights);
    weights.close();
    assertThat(weights.outputNorm().getAtIndex(JAVA_FLOAT, 0)).isNotNaN();
    weights.close();
    assertThatThrownBy(() -> weights.outputNorm().getAtIndex(JAVA_FLOAT, 0)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(weights::retain).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(weights::close).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void afterAFailureTheTeamCanLoadAnotherModel() {
    assertThatThrownBy(() -> load(model().without("output_norm.weight"))).isInstanceOf(ModelFormatException.class);
    try (Weights weights = load(model())) {
      assertThat(weights.bytes()).isPositive();
    }
  }
}
