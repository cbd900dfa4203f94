package dev.tacho.engine.model;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;

import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Implementation;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.ffm.SystemPages;
import dev.tacho.engine.parallel.WorkerTeam;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What is believed of a file of packed weights, and what is not. */
class RepackCacheTest {
  private static final int FIRST_WEIGHT = 4096;

  @TempDir private Path folder;

  private final List<String> log = new ArrayList<>();
  private Path model = Path.of("");
  private Path directory = Path.of("");
  private Kernels kernels = TestKernels.scalar();
  private final WorkerTeam team = new WorkerTeam("repack", 2);

  @BeforeEach
  void writeModel() {
    model = new TinyModel(3, DType.Q8_0).write(folder.resolve("model.gguf"));
    directory = folder.resolve("cache/of/weights");
  }

  @AfterEach
  void closeTeam() {
    team.close();
  }

  /** Loads and gives the number of tensors that had to be packed. */
  private int load() {
    List<Long> packed = new ArrayList<>();
    try (GgufFile file = GgufFile.open(model)) {
      RepackCache cache = new RepackCache(directory, log::add);
      Weights.load(file, ModelConfig.of(file), kernels, team, (loaded, total, source) -> packed.add(loaded), cache)
          .close();
    }
    return packed.size();
  }

  private int tensors() {
    try (GgufFile file = GgufFile.open(model)) {
      return file.tensors().size();
    }
  }

  private Path kept() {
    return new RepackCache(directory, log::add).fileOf(model, kernels);
  }

  private void assertMadeAnewBecause(String reason) {
    log.clear();
    assertThat(load()).isEqualTo(tensors());
    assertThat(log).hasSize(2);
    assertThat(log.getFirst()).contains(kept().toString(), reason);
    assertThat(log.getLast()).startsWith("weights are kept in ");
    assertThat(load()).as("the next time").isZero();
  }

  static Stream<Implementation> implementations() {
    return Implementation.available();
  }

  @ParameterizedTest
  @MethodSource("implementations")
  void mappedWeightsGiveTheSameLogitsAsPackedOnes(Implementation implementation) {
    kernels = implementation.open();
    assertThat(load()).isEqualTo(tensors());
    int[] prompt = {17, 4, 99};
    RepackCache cache = new RepackCache(directory, log::add);
    try (ModelRig packed = new ModelRig(model, kernels, ModelRig.Shape.f32(2));
        ModelRig mapped = new ModelRig(model, kernels, ModelRig.Shape.f32(2), cache)) {
      assertThat(log.getLast()).isEqualTo("weights are mapped from " + kept());
      assertThat(mapped.generate(prompt, 5)).isEqualTo(packed.generate(prompt, 5));
      assertThat(mapped.logits("only").getLast()).isEqualTo(packed.logits("only").getLast());
    }
  }

  @Test
  void nothingElseIsLeftInTheDirectory() throws IOException {
    load();
    try (Stream<Path> files = Files.list(directory)) {
      assertThat(files).containsExactly(kept());
    }
  }

  @Test
  void anotherTimeOfLastChange() throws IOException {
    load();
    FileTime time = Files.getLastModifiedTime(model);
    Files.setLastModifiedTime(model, FileTime.from(time.toInstant().plusNanos(1_000_000)));
    assertMadeAnewBecause("another state of the model file");
  }

  @Test
  void anotherHeaderOfTheSameSizeAndTime() throws IOException {
    load();
    FileTime time = Files.getLastModifiedTime(model);
    new TinyModel(3, DType.Q8_0).real("llama.rope.freq_base", 10_001).write(model);
    Files.setLastModifiedTime(model, time);
    assertMadeAnewBecause("another state of the model file");
  }

  @Test
  void anotherSize() throws IOException {
    load();
    FileTime time = Files.getLastModifiedTime(model);
    Files.write(model, new byte[64], StandardOpenOption.APPEND);
    Files.setLastModifiedTime(model, time);
    assertMadeAnewBecause("another state of the model file");
  }

  /** What they are called in the end decides, where they do not pack to the same size anyway. */
  @Test
  void otherKernelsOfTheSameProvider() {
    kernels = Implementation.NATIVE_SCALAR.open();
    load();
    Path ofScalar = kept();
    kernels = TestKernels.all().getLast().getPayload();
    assertThat(kernels.description()).isNotEqualTo(Implementation.NATIVE_SCALAR.open().description());
    assertThat(kept()).isEqualTo(ofScalar);
    assertMadeAnewBecause("it is made anew");
  }

  @Test
  void otherKernelsHaveAFileOfTheirOwn() {
    load();
    Path ofScalar = kept();
    kernels = Implementation.VECTOR.open();
    assertThat(load()).isEqualTo(tensors());
    assertThat(kept()).isNotEqualTo(ofScalar);
    assertThat(ofScalar).exists();
  }

  @Test
  void aModelOfTheSameNameElsewhereHasAFileOfItsOwn() throws IOException {
    load();
    Path first = kept();
    Files.createDirectories(folder.resolve("other"));
    model = Files.copy(model, folder.resolve("other/model.gguf"), StandardCopyOption.COPY_ATTRIBUTES);
    assertThat(load()).isEqualTo(tensors());
    assertThat(kept()).isNotEqualTo(first);
  }

  /** A single bit, in each of the fields that are not compared above. */
  @Test
  void aDamagedBitInTheHeader() throws IOException {
    load();
    byte[] good = Files.readAllBytes(kept());
    for (int at : new int[] {0, 8, 40, 43, 48}) {
      byte[] bad = good.clone();
      bad[at] ^= 16;
      Files.write(kept(), bad);
      assertMadeAnewBecause(at < 16 ? "no cache of weights" : "other kernels");
      assertThat(Files.readAllBytes(kept())).as("byte %s was wrong", at).isEqualTo(good);
    }
  }

  @Test
  void aFileThatEndsTooSoonOrTooLate() throws IOException {
    load();
    byte[] good = Files.readAllBytes(kept());
    for (int length : new int[] {0, 50, FIRST_WEIGHT, good.length - 64, good.length + 64}) {
      Files.write(kept(), Arrays.copyOf(good, length));
      assertMadeAnewBecause("is not as long as it should be");
    }
  }

  @Test
  void whatCannotBeWrittenIsNotKept() throws IOException {
    Files.write(folder.resolve("file"), new byte[1]);
    directory = folder.resolve("file");
    assertThat(load()).isEqualTo(tensors());
    assertThat(log.getLast()).startsWith("weights are not kept: ");
  }

  @Test
  void whatIsNoFileIsNotOpened() throws IOException {
    Files.createDirectories(kept());
    assertThat(load()).isEqualTo(tensors());
    assertThat(log.getFirst()).isEqualTo(kept() + " is no regular file; it is made anew");
    assertThat(log.getLast()).startsWith("weights are not kept: ");
  }

  /** As waking from a deep sleep does. */
  @Test
  void discardedWeightsOfAMappingComeBackByThemselves() {
    load();
    try (GgufFile file = GgufFile.open(model);
        Weights weights =
            Weights.load(
                file, ModelConfig.of(file), kernels, team, (loaded, total, source) -> {},
                new RepackCache(directory, log::add))) {
      byte[] before = weights.outputNorm().toArray(JAVA_BYTE);
      List<MemorySegment> discarded = new ArrayList<>();
      weights.discard(segment -> {
        SystemPages.release(segment);
        discarded.add(segment);
      });
      assertThat(discarded).hasSize(tensors());
      weights.reload(file, team, (loaded, total, source) -> fail("packed again"));
      assertThat(weights.outputNorm().toArray(JAVA_BYTE)).isEqualTo(before);
    }
  }

  @Test
  void aModelThatIsNotValidIsRefusedAsWithoutACache() {
    load();
    model = new TinyModel(3, DType.Q8_0).without("blk.1.ffn_up.weight").write(model);
    assertThatThrownBy(this::load)
        .isInstanceOf(ModelFormatException.class)
        .hasMessageContaining("blk.1.ffn_up.weight");
  }
}
