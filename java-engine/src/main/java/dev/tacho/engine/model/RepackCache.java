package dev.tacho.engine.model;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.Weight;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Weights as kernels want them, kept in files of a directory: the next start maps them instead of packing again. A file
 * is believed only if it was made from the same model file by kernels that pack alike and is as long as it should be;
 * otherwise it is made anew. It is written to the disk under another name and then renamed, so it is whole. What cannot
 * be written is not kept. Used by the thread that loads.
 *
 * <pre>
 *     0    8  "TACHORPK"
 *     8    8  version of this layout
 *    16    8  bytes of the model file
 *    24    8  time of its last change, nanoseconds since 1970
 *    32    8  CRC-32C of what stands before its tensors
 *    40    8  CRC-32C of the kernels' description and of matrices that they have packed
 *    48    8  bytes of the weights
 *    56       zeros
 *  4096       the weights, each tensor on a multiple of 64 bytes                       (little-endian)
 * </pre>
 */
public final class RepackCache {
  private static final String SUFFIX = ".tacho-repack";
  private static final long MAGIC = ByteBuffer.wrap("TACHORPK".getBytes(StandardCharsets.US_ASCII))
      .order(ByteOrder.LITTLE_ENDIAN)
      .getLong();
  private static final long VERSION = 3;
  private static final int KEY_BYTES = 56;
  private static final int HEADER_BYTES = 4096;
  private static final int LAYOUT_AT = 40;

  private static final int SAMPLE_ROWS = 3 * Kernels.ROW_GROUP;
  private static final int SAMPLE_COLUMNS = 512;
  private static final int SAMPLE_ODD = 1024;
  private static final long SAMPLE_SEED = 1;

  private static final int WRITE_BYTES = 64 << 20;

  private final Path directory;
  private final Consumer<String> log;

  /**
   * @param directory is made if it is not there
   * @param log gets a sentence on what was found or made
   */
  public RepackCache(Path directory, Consumer<String> log) {
    this.directory = directory;
    this.log = log;
  }

  /** Where the weights of a model file are kept for some kernels. */
  Path fileOf(Path model, Kernels kernels) {
    Path absolute = model.toAbsolutePath().normalize();
    String place = Integer.toHexString(absolute.toString().hashCode());
    return directory.resolve(absolute.getFileName() + "-" + place + "-" + kernels.id() + SUFFIX);
  }

  /**
   * Maps the weights of a model, if they are there and good.
   *
   * @param file the model
   * @param arena ends the mapping
   * @return read-only; null if they have to be packed
   */
  @Nullable MemorySegment find(GgufFile file, Kernels kernels, TensorManifest manifest, Arena arena) {
    Path kept = fileOf(file.path(), kernels);
    if (Files.exists(kept) && !Files.isRegularFile(kept)) {
      // A pipe would be waited for.
      log.accept(kept + " is no regular file; it is made anew");
      return null;
    }
    try (FileChannel channel = FileChannel.open(kept, StandardOpenOption.READ)) {
      String fault = "is not as long as it should be";
      if (channel.size() == HEADER_BYTES + manifest.totalBytes()) {
        MemorySegment all = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
        fault = fault(all, key(file, kernels, manifest));
        if (fault == null) {
          log.accept("weights are mapped from " + kept);
          return all.asSlice(HEADER_BYTES);
        }
      }
      log.accept(kept + " " + fault + "; it is made anew");
    } catch (NoSuchFileException first) {
      log.accept(kept + " is not there yet");
    } catch (IOException e) {
      log.accept(kept + " cannot be read (" + e + "); it is made anew");
    }
    return null;
  }

  private static @Nullable String fault(MemorySegment all, byte[] key) {
    MemorySegment expected = MemorySegment.ofArray(key);
    long at = all.asSlice(0, KEY_BYTES).mismatch(expected);
    if (at < 0) {
      return null;
    }
    if (at < 2 * Long.BYTES) {
      return "is no cache of weights of this version";
    }
    return at < LAYOUT_AT ? "was made from another state of the model file" : "was made by other kernels";
  }

  /**
   * Keeps the weights of a model.
   *
   * @param weights packed, as the manifest lays them out
   */
  void store(GgufFile file, Kernels kernels, TensorManifest manifest, MemorySegment weights) {
    Path kept = fileOf(file.path(), kernels);
    try {
      Files.createDirectories(directory);
      long needed = HEADER_BYTES + weights.byteSize();
      long free = Files.getFileStore(directory).getUsableSpace();
      if (free < needed) {
        log.accept("weights are not kept: " + kept + " needs " + needed + " bytes, " + free + " are free");
        return;
      }
      Path written = Files.createTempFile(directory, "weights", ".tmp");
      try {
        write(written, key(file, kernels, manifest), weights);
        Files.move(written, kept, StandardCopyOption.ATOMIC_MOVE);
      } finally {
        Files.deleteIfExists(written);
      }
      log.accept("weights are kept in " + kept);
    } catch (IOException e) {
      log.accept("weights are not kept: " + kept + " cannot be written (" + e + ")");
    }
  }

  private static void write(Path to, byte[] key, MemorySegment weights) throws IOException {
    ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    header.put(key).position(0);
    try (FileChannel channel = FileChannel.open(to, StandardOpenOption.WRITE)) {
      writeFully(channel, header);
      for (long at = 0; at < weights.byteSize(); at += WRITE_BYTES) {
        writeFully(channel, weights.asSlice(at, Math.min(WRITE_BYTES, weights.byteSize() - at)).asByteBuffer());
      }
      channel.force(true);
    }
  }

  private static void writeFully(FileChannel channel, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  /** The first {@link #KEY_BYTES} of a file. */
  private static byte[] key(GgufFile file, Kernels kernels, TensorManifest manifest) throws IOException {
    return ByteBuffer.allocate(KEY_BYTES)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(MAGIC)
        .putLong(VERSION)
        .putLong(Files.size(file.path()))
        .putLong(Files.getLastModifiedTime(file.path()).to(TimeUnit.NANOSECONDS))
        .putLong(checksum(file.header()))
        .putLong(layout(kernels, manifest))
        .putLong(manifest.totalBytes())
        .array();
  }

  /** Who packs, and what becomes of matrices of each type: the same only where the memory is laid out alike. */
  private static long layout(Kernels kernels, TensorManifest manifest) {
    CRC32C checksum = new CRC32C();
    checksum.update(kernels.description().getBytes(StandardCharsets.UTF_8));
    try (Arena arena = Arena.ofShared()) {
      KernelWorker worker = new KernelWorker(arena, 0);
      manifest.entries().stream()
          .filter(entry -> !entry.vector())
          .map(TensorManifest.Entry::dtype)
          .distinct()
          .sorted()
          .forEach(dtype -> checksum.update(sample(kernels, dtype, worker, arena).asByteBuffer()));
    }
    return checksum.getValue();
  }

  /** A third has any content; the rest has bytes near each other, and few others, which some layouts make shorter. */
  private static MemorySegment sample(Kernels kernels, DType dtype, KernelWorker worker, Arena arena) {
    byte[] content = new byte[(int) dtype.bytes(SAMPLE_ROWS * (long) SAMPLE_COLUMNS)];
    Random random = new Random(SAMPLE_SEED);
    random.nextBytes(content);
    for (int i = content.length / 3; i < content.length; i++) {
      if (random.nextInt(SAMPLE_ODD) != 0) {
        content[i] &= 3;
      }
    }
    MemorySegment source = arena.allocateFrom(JAVA_BYTE, content);
    MemorySegment packed =
        arena.allocate(kernels.weightBytes(dtype, SAMPLE_ROWS, SAMPLE_COLUMNS), KernelWorker.LINE_BYTES);
    Weight weight = new Weight(dtype, SAMPLE_ROWS, SAMPLE_COLUMNS, packed);
    kernels.weightPack(weight, source, 0, SAMPLE_ROWS / Kernels.ROW_GROUP, worker);
    return packed;
  }

  /** Accidents are to be noticed, not attacks; a cryptographic hash is slow while nothing is compiled yet. */
  private static long checksum(MemorySegment bytes) {
    CRC32C checksum = new CRC32C();
    for (long at = 0; at < bytes.byteSize(); at += WRITE_BYTES) {
      checksum.update(bytes.asSlice(at, Math.min(WRITE_BYTES, bytes.byteSize() - at)).asByteBuffer());
    }
    return checksum.getValue();
  }
}
