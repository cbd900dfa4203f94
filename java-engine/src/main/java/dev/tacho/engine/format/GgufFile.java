package dev.tacho.engine.format;

import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.kernel.DType;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A GGUF model file (version 2 or 3, little-endian), mapped into memory: its metadata by key and its tensors by name.
 *
 * <p>{@link #open} reads and checks the whole header, so whatever a getter or {@link #data} later touches lies inside
 * the file. Values are decoded when asked for and not kept: ask once. Heap use is in proportion to the header, never to
 * a number that stands in it.
 *
 * <p>Any thread may read. The mapping belongs to this object: after {@link #close()} getters and segments from
 * {@link #data} throw {@link IllegalStateException}, while names, shapes and keys stay good. Don't shrink the file
 * while it is open.
 */
public final class GgufFile implements AutoCloseable {
  private final Path path;
  private final Arena arena;
  private final MemorySegment bytes;
  private final GgufHeader header;

  private GgufFile(Path path, Arena arena, MemorySegment bytes, GgufHeader header) {
    this.path = path;
    this.arena = arena;
    this.bytes = bytes;
    this.header = header;
  }

  /**
   * Maps the file and checks its header.
   *
   * @throws ModelFormatException if it cannot be read, or is not a whole GGUF file; says where and why
   * @throws UnsupportedException if its version, or the type of one of its tensors, is not known here
   */
  @SuppressWarnings("MustBeClosedChecker") // the arena lives as long as the file that is returned
  public static GgufFile open(Path path) {
    if (Files.exists(path) && !Files.isRegularFile(path)) {
      throw new ModelFormatException(
          path.toString(),
          -1,
          "file",
          "a regular file",
          Files.isDirectory(path) ? "a directory" : "another kind");
    }
    Arena arena = Arena.ofShared();
    boolean opened = false;
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      MemorySegment bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
      GgufFile file = new GgufFile(path, arena, bytes, GgufHeader.read(path.toString(), bytes));
      opened = true;
      return file;
    } catch (IOException e) {
      ModelFormatException fault =
          new ModelFormatException(path.toString(), -1, "file", "a readable file", reasonOf(e));
      fault.initCause(e);
      throw fault;
    } finally {
      if (!opened) {
        arena.close();
      }
    }
  }

  private static String reasonOf(IOException e) {
    if (e instanceof NoSuchFileException) {
      return "no such file";
    }
    if (e instanceof AccessDeniedException) {
      return "permission denied";
    }
    return e.toString();
  }

  /** The file, as given to {@link #open}. */
  public Path path() {
    return path;
  }

  /** 2 or 3. */
  public int version() {
    return header.version();
  }

  /** The metadata keys in file order. */
  public Set<String> keys() {
    return Collections.unmodifiableSet(header.metadata().keySet());
  }

  /** Whether the file has a metadata entry under this key. */
  public boolean contains(String key) {
    return header.metadata().containsKey(key);
  }

  /** Whether the value under this key is an array; false if there is none. */
  public boolean isArray(String key) {
    GgufValue value = header.metadata().get(key);
    return value != null && value.isArray();
  }

  /**
   * The number of elements of an array, without decoding it.
   *
   * @throws ModelFormatException if the key is absent or its value is no array
   */
  public long arrayLength(String key) {
    GgufValue value = require(key, "an array");
    if (!value.isArray()) {
      throw fault(value.offset(), key, "an array", value.describe());
    }
    return value.count();
  }

  /**
   * A string.
   *
   * @throws ModelFormatException if the key is absent, has another type, or is not UTF-8
   */
  public String string(String key) {
    return GgufDecoder.string(path.toString(), bytes, key, require(key, "a string"));
  }

  /** A string, or another if the key is absent. */
  public String string(String key, String ifAbsent) {
    GgufValue value = find(key);
    return value == null ? ifAbsent : GgufDecoder.string(path.toString(), bytes, key, value);
  }

  /**
   * An integer of any width.
   *
   * @throws ModelFormatException if the key is absent, has another type, or does not fit in a long
   */
  public long integer(String key) {
    return GgufDecoder.integer(path.toString(), bytes, key, require(key, "an integer"));
  }

  /** An integer, or another if the key is absent. */
  public long integer(String key, long ifAbsent) {
    GgufValue value = find(key);
    return value == null ? ifAbsent : GgufDecoder.integer(path.toString(), bytes, key, value);
  }

  /**
   * A number: a float of either width or an integer of any.
   *
   * @throws ModelFormatException if the key is absent or has another type
   */
  public double number(String key) {
    return GgufDecoder.number(path.toString(), bytes, key, require(key, "a number"));
  }

  /** A number, or another if the key is absent. */
  public double number(String key, double ifAbsent) {
    GgufValue value = find(key);
    return value == null ? ifAbsent : GgufDecoder.number(path.toString(), bytes, key, value);
  }

  /** A truth value, or another if the key is absent. */
  public boolean bool(String key, boolean ifAbsent) {
    GgufValue value = find(key);
    return value == null ? ifAbsent : GgufDecoder.bool(path.toString(), bytes, key, value);
  }

  /**
   * An array of strings.
   *
   * @throws ModelFormatException if the key is absent, has another type, or a string is not UTF-8
   */
  public GgufStrings strings(String key) {
    return GgufDecoder.strings(path.toString(), bytes, key, require(key, "an array of strings"));
  }

  /**
   * An array of numbers of any type.
   *
   * @throws ModelFormatException if the key is absent or has another type
   */
  public float[] floats(String key) {
    return GgufDecoder.floats(path.toString(), bytes, key, require(key, "an array of numbers"));
  }

  /**
   * An array of integers of any width, or of bools as 0 and 1.
   *
   * @throws ModelFormatException if the key is absent, has another type, or an element does not fit in an int
   */
  public int[] integers(String key) {
    return GgufDecoder.integers(path.toString(), bytes, key, require(key, "an array of integers"));
  }

  /** The tensors in file order. */
  public List<GgufTensor> tensors() {
    return List.copyOf(header.tensors().values());
  }

  /**
   * The tensor with this name.
   *
   * @throws ModelFormatException if there is none; names it
   */
  public GgufTensor tensor(String name) {
    GgufTensor tensor = header.tensors().get(name);
    if (tensor == null) {
      throw fault(
          -1, "tensor " + name, "present", "none of that name among " + header.tensors().size());
    }
    return tensor;
  }

  /** The tensor with this name, if there is one. */
  public Optional<GgufTensor> findTensor(String name) {
    return Optional.ofNullable(header.tensors().get(name));
  }

  /**
   * The type with which kernels compute with this tensor.
   *
   * @throws UnsupportedException if none does; names tensor, type and file
   */
  public DType dtype(GgufTensor tensor) {
    return tensor.dtype(path);
  }

  /** What stands before the first tensor's data: metadata and list of tensors; read-only, until close. */
  public MemorySegment header() {
    long end = bytes.byteSize();
    for (GgufTensor tensor : header.tensors().values()) {
      end = Math.min(end, tensor.offset());
    }
    return bytes.asSlice(0, end);
  }

  /** The tensor's bytes as they lie in the file: read-only, of exactly {@link GgufTensor#bytes()}, until close. */
  public MemorySegment data(GgufTensor tensor) {
    return bytes.asSlice(tensor.offset(), tensor.bytes());
  }

  /** Unmaps the file. Again: nothing. */
  @Override
  public void close() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }

  private @Nullable GgufValue find(String key) {
    return header.metadata().get(key);
  }

  private GgufValue require(String key, String expected) {
    GgufValue value = find(key);
    if (value == null) {
      throw fault(-1, key, expected, "no such key");
    }
    return value;
  }

  private ModelFormatException fault(long at, String field, String expected, String found) {
    return new ModelFormatException(path.toString(), at, field, expected, found);
  }
}
