package dev.tacho.engine.kernel;

/** The forms in which a matmul reads rows of activations, with their numbers in {@code tacho.h}. */
public enum ActivationFormat {
  /** Floats as they are. */
  FLOAT32(0, 1),
  /**
   * First blocks of 32 elements, all of equal size (in {@code tacho.h} 56 bytes), each of which begins with 32 int8
   * codes and their float32 scale; the rest of a block, and of the row, is the provider's own. See {@link
   * Kernels#activationPack} for the rounding.
   */
  INT8(1, 32),
  /** The upper halves of floats, rounded to nearest even. */
  BFLOAT16(2, 1);

  private final int id;
  private final int blockElements;

  ActivationFormat(int id, int blockElements) {
    this.id = id;
    this.blockElements = blockElements;
  }

  /** The format's number in {@code tacho.h}. */
  public int id() {
    return id;
  }

  /** Elements that a row is a multiple of. */
  public int blockElements() {
    return blockElements;
  }

  /** The format with a number of {@code tacho.h}. */
  public static ActivationFormat of(int id) {
    for (ActivationFormat format : values()) {
      if (format.id == id) {
        return format;
      }
    }
    throw new IllegalArgumentException("no format of activations has the number " + id);
  }
}
