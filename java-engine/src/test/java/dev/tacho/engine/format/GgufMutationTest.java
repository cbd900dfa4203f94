package dev.tacho.engine.format;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.tacho.engine.EngineException;
import dev.tacho.engine.token.Tokenizer;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The bundled model with random damage: each of 2,000 files either opens or is refused by an exception of ours, and
 * reading it allocates no more than in proportion to its size.
 */
class GgufMutationTest {
  private static final Path MODEL =
      Path.of(System.getProperty("tacho.root", ".."), "models", "tacho-tales", "tacho-tales.gguf");
  private static final int FILES_PER_SEED = 200;

  /** Strings, boxes and copies of the vocabulary: what a byte of header may cost on the heap. */
  private static final long HEAP_BYTES_PER_FILE_BYTE = 64;

  private static final long FIXED_HEAP_BYTES = 4L << 20;
  private static final long[] EXTREMES = {
    0,
    1,
    -1,
    Long.MAX_VALUE,
    Long.MIN_VALUE,
    Integer.MAX_VALUE,
    1L << 31,
    1L << 32,
    1L << 40,
    1L << 61,
    (1L << 61) + 1
  };

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  @TempDir Path directory;

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
  void damagedFileIsRefusedOrRead(long seed) throws IOException {
    byte[] whole = Files.readAllBytes(MODEL);
    int headerBytes = headerBytes();
    Path path = Files.write(directory.resolve("damaged.gguf"), whole);
    Random random = new Random(seed);
    int refused = 0;
    try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
      for (int i = 0; i < FILES_PER_SEED; i++) {
        damage(file, whole, headerBytes, random);
        refused += isRefused(path, "seed " + seed + ", file " + i) ? 1 : 0;
        write(file, 0, whole);
      }
    }
    assertThat(refused).as("files refused").isBetween(FILES_PER_SEED / 4, FILES_PER_SEED - 1);
  }

  private static int headerBytes() {
    try (GgufFile file = GgufFile.open(MODEL)) {
      return (int) file.tensors().stream().mapToLong(GgufTensor::offset).min().orElseThrow();
    }
  }

  private static boolean isRefused(Path path, String name) throws IOException {
    long before = THREADS.getCurrentThreadAllocatedBytes();
    boolean refused = false;
    try (GgufFile file = GgufFile.open(path)) {
      readAll(file);
      Tokenizer.of(file).close();
    } catch (EngineException e) {
      assertThat(e.getMessage()).as(name).isNotBlank();
      refused = true;
    }
    long allocated = THREADS.getCurrentThreadAllocatedBytes() - before;
    assertThat(allocated)
        .as(name)
        .isLessThan(FIXED_HEAP_BYTES + HEAP_BYTES_PER_FILE_BYTE * Files.size(path));
    return refused;
  }

  private static void readAll(GgufFile file) {
    for (GgufTensor tensor : file.tensors()) {
      file.data(tensor).get(ValueLayout.JAVA_BYTE, tensor.bytes() - 1);
    }
    for (String key : file.keys()) {
      try {
        if (file.isArray(key)) {
          file.floats(key);
        } else {
          file.number(key);
        }
      } catch (EngineException notANumber) {
        assertThat(notANumber.getMessage()).contains(key);
      }
    }
  }

  private static void damage(RandomAccessFile file, byte[] whole, int headerBytes, Random random)
      throws IOException {
    boolean inHeader = random.nextInt(8) > 0;
    int within = inHeader ? headerBytes : whole.length;
    switch (random.nextInt(4)) {
      case 0 -> {
        for (int flips = 1 + random.nextInt(8); flips > 0; flips--) {
          int at = random.nextInt(within);
          write(file, at, new byte[] {(byte) (whole[at] ^ 1 << random.nextInt(8))});
        }
      }
      case 1 -> file.setLength(random.nextInt(within));
      case 2 -> {
        int at =
            random.nextInt(4) == 0
                ? 8 + 8 * random.nextInt(2)
                : random.nextInt(within - Long.BYTES);
        long extreme =
            random.nextInt(4) == 0 ? whole.length : EXTREMES[random.nextInt(EXTREMES.length)];
        write(file, at, GgufWriter.little(Long.BYTES).putLong(extreme).array());
      }
      default -> {
        int length = 1 + random.nextInt(Math.min(4096, within / 4));
        int first = random.nextInt(within - length);
        int second = random.nextInt(within - length);
        write(file, first, Arrays.copyOfRange(whole, second, second + length));
        write(file, second, Arrays.copyOfRange(whole, first, first + length));
      }
    }
  }

  private static void write(RandomAccessFile file, int at, byte[] bytes) throws IOException {
    file.seek(at);
    file.write(bytes);
  }
}
