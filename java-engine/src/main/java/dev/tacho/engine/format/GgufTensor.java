package dev.tacho.engine.format;

import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.kernel.DType;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Where a tensor lies in a GGUF file, and what it is. A value, good after the file is closed; the bytes themselves are
 * {@link GgufFile#data(GgufTensor)}.
 *
 * @param name the tensor's name, e.g. {@code blk.0.attn_q.weight}
 * @param typeId the number of the element type in GGUF; kernels may lack it, see {@link GgufFile#dtype(GgufTensor)}
 * @param shape 1 to 4 extents in GGUF's order: the fastest first, so a matrix of n rows of k elements is [k, n]
 * @param offset first byte, counted from the start of the file
 * @param bytes length in bytes
 */
public record GgufTensor(String name, int typeId, List<Long> shape, long offset, long bytes) {
  /** Copies the shape. */
  public GgufTensor {
    shape = List.copyOf(shape);
  }

  /** The product of the shape. */
  public long elements() {
    long product = 1;
    for (long extent : shape) {
      product = Math.multiplyExact(product, extent);
    }
    return product;
  }

  /** ggml's word for the element type, e.g. {@code Q8_0}; its number if ggml has none. */
  public String typeName() {
    GgmlType type = GgmlType.ofId(typeId);
    return type != null ? type.name() : Integer.toUnsignedString(typeId);
  }

  /**
   * The element type for kernels.
   *
   * @param file for the message
   * @throws UnsupportedException if no kernel computes with this tensor's type; names both and the file
   */
  DType dtype(Path file) {
    for (DType dtype : DType.values()) {
      if (dtype.id() == typeId) {
        return dtype;
      }
    }
    throw new UnsupportedException(
        "tensor type " + GgmlType.describe(typeId) + " of " + name + " in " + file,
        "kernels exist for "
            + Arrays.stream(DType.values()).map(DType::toString).collect(Collectors.joining(", ")));
  }
}
