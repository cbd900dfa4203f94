package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import java.lang.foreign.MemorySegment;

/**
 * The rounding of activations to 8 bits that all providers share, bit by bit. Stateless.
 *
 * <pre>
 *   block   | int8 code [32] | float32 scale |      36 bytes
 * </pre>
 */
public final class Int8Quantizer {
  /** Elements of a block. */
  public static final int BLOCK = 32;

  /** Offset of a block's scale. */
  public static final int SCALE_OFFSET = BLOCK;

  /** Bytes of codes and scale. */
  public static final int BLOCK_BYTES = BLOCK + Float.BYTES;

  /** Below it 127 / max|x| would overflow. */
  private static final float TINY = 0x1p-119f;

  private static final float LARGEST_CODE = 127;

  private Int8Quantizer() {}

  /** Writes the codes and the scale of 32 floats; see {@link Kernels#activationPack}. */
  public static void quantize(MemorySegment x, long xAt, MemorySegment block, long blockAt) {
    float largest = 0;
    for (int i = 0; i < BLOCK; i++) {
      largest = Math.max(largest, Math.abs(x.get(JAVA_FLOAT, xAt + (long) i * Float.BYTES)));
    }
    boolean finite = largest <= Float.MAX_VALUE;
    float factor = finite && largest >= TINY ? LARGEST_CODE / largest : 0;
    for (int i = 0; i < BLOCK; i++) {
      float value = factor == 0 ? 0 : x.get(JAVA_FLOAT, xAt + (long) i * Float.BYTES) * factor;
      block.set(JAVA_BYTE, blockAt + i, (byte) Math.rint(value));
    }
    float scale = factor == 0 ? 0 : largest / LARGEST_CODE;
    block.set(JAVA_FLOAT, blockAt + SCALE_OFFSET, finite ? scale : Float.NaN);
  }

  /** The code of an element of a block. */
  public static int code(MemorySegment block, long blockAt, int j) {
    return block.get(JAVA_BYTE, blockAt + j);
  }

  /** The scale of a block. */
  public static float scale(MemorySegment block, long blockAt) {
    return block.get(JAVA_FLOAT, blockAt + SCALE_OFFSET);
  }
}
