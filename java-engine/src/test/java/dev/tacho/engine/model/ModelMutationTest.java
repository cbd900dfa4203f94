package dev.tacho.engine.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.EngineException;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.parallel.WorkerTeam;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The bundled model, broken: each file gives a model or an exception that says what is wrong, and takes no more than
 * its own size.
 */
class ModelMutationTest {
  private static final int MUTATIONS = 500;
  private static final Path BUNDLED =
      Path.of(System.getProperty("tacho.root", "..")).resolve("models/tacho-tales/tacho-tales.gguf");

  @TempDir Path folder;

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4})
  void aMutatedFileIsAModelOrAnError(long seed) throws IOException {
    Random random = new Random(seed);
    Path path = folder.resolve("model.gguf");
    byte[] good = Files.readAllBytes(BUNDLED);
    int header = good.length - (int) dataBytes(BUNDLED);
    Kernels kernels = TestKernels.scalar();
    int loaded = 0;
    try (WorkerTeam team = new WorkerTeam("mutation", 2)) {
      for (int i = 0; i < MUTATIONS; i++) {
        byte[] bad = mutate(good, header, random);
        Files.write(path, bad);
        try (GgufFile file = GgufFile.open(path)) {
          ModelConfig config = ModelConfig.of(file);
          assertThat(Weights.requiredBytes(file, config, kernels)).as("mutation %s", i).isLessThan(2L * bad.length);
          Weights.load(file, config, kernels, team, (done, total, source) -> {}).close();
          loaded++;
        } catch (EngineException e) {
          assertThat(e.getMessage()).as("mutation %s", i).isNotBlank();
        }
      }
    }
    assertThat(loaded).as("some mutations do no harm, most do").isBetween(1, MUTATIONS - 1);
  }

  private static long dataBytes(Path path) {
    try (GgufFile file = GgufFile.open(path)) {
      return file.tensors().stream().mapToLong(tensor -> tensor.bytes()).sum();
    }
  }

  /** Changes a few bytes of the header, or cuts the end off. */
  private static byte[] mutate(byte[] good, int header, Random random) {
    if (random.nextInt(10) == 0) {
      return Arrays.copyOf(good, random.nextInt(good.length));
    }
    byte[] bad = good.clone();
    for (int n = 1 + random.nextInt(3); n > 0; n--) {
      int at = random.nextInt(header);
      bad[at] = (byte) (random.nextBoolean() ? random.nextInt() : bad[at] ^ (1 << random.nextInt(8)));
    }
    return bad;
  }
}
