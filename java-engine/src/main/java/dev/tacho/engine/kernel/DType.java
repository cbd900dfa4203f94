package dev.tacho.engine.kernel;

/**
 * Element types of tensors that kernels work on, with GGUF's numbers and block sizes. {@code Q8_0}: 34 bytes (f16
 * scale, 32 int8). {@code Q4_0}: 18 bytes (f16 scale, 16 bytes; low nibbles are elements 0..15, high nibbles 16..31,
 * value = (nibble - 8) * scale). {@code Q4_K} and {@code Q6_K}: see {@link KQuants}.
 */
public enum DType {
  /** IEEE single precision. */
  F32(0, 1, 4),
  /** IEEE half precision. */
  F16(1, 1, 2),
  /** 4 bits, a scale for 32 elements. */
  Q4_0(2, 32, 18),
  /** 8 bits, a scale for 32 elements. */
  Q8_0(8, 32, 34),
  /** 4 bits, a scale and a minimum of 6 bits for 32 elements, 256 in a block. */
  Q4_K(12, 256, 144),
  /** 6 bits, a scale of 8 bits for 16 elements, 256 in a block. */
  Q6_K(14, 256, 210),
  /** The upper half of a single. */
  BF16(30, 1, 2);

  private final int id;
  private final int blockElements;
  private final int blockBytes;

  DType(int id, int blockElements, int blockBytes) {
    this.id = id;
    this.blockElements = blockElements;
    this.blockBytes = blockBytes;
  }

  /** The type's number in GGUF and in {@code tacho.h}. */
  public int id() {
    return id;
  }

  /** Elements of a block. */
  public int blockElements() {
    return blockElements;
  }

  /** Bytes of a block. */
  public int blockBytes() {
    return blockBytes;
  }

  /** Bytes of so many elements, a multiple of the block, in file layout. */
  public long bytes(long elements) {
    if (elements % blockElements != 0) {
      throw new IllegalArgumentException(
          elements + " elements are not whole blocks of " + blockElements + " of " + this);
    }
    return Math.multiplyExact(elements / blockElements, blockBytes);
  }
}
