package dev.tacho.engine.kernel.scalar;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.KvCacheLayer;
import java.lang.foreign.MemorySegment;

/** Writes one token's head into its slot of the KV cache. Stateless. */
final class ScalarKvWrite {
  private static final float MAX_CODE = 127;

  /** From here on a float is no finite half any more. */
  private static final float NO_HALF = 65520;

  private ScalarKvWrite() {}

  /**
   * @param slot slot of the token, in the block
   * @param panel where the head's panels begin in the cache, in bytes
   * @param k key of the token, from float {@code kAt} on
   * @param v value of the token, from float {@code vAt} on
   */
  static void head(
      KvCacheLayer cache, int slot, long panel, MemorySegment k, long kAt, MemorySegment v, long vAt) {
    if (cache.dtype() == DType.Q8_0) {
      for (int d = 0; d < cache.headDim(); d += KvCacheLayer.SCALE_ELEMENTS) {
        scaled(cache, slot, panel, d, k, kAt, cache.k(), true);
        scaled(cache, slot, panel, d, v, vAt, cache.v(), false);
      }
      return;
    }
    for (int d = 0; d < cache.headDim(); d++) {
      Elements.set(cache.dtype(), cache.k(), panel, cache.keyIndex(slot, d), k.getAtIndex(JAVA_FLOAT, kAt + d));
      Elements.set(cache.dtype(), cache.v(), panel, cache.valueIndex(slot, d), v.getAtIndex(JAVA_FLOAT, vAt + d));
    }
  }

  /** The scale and codes of the elements from {@code first} on that share one. */
  private static void scaled(
      KvCacheLayer cache, int slot, long panel, int first, MemorySegment x, long at, MemorySegment to, boolean key) {
    int end = Math.min(first + KvCacheLayer.SCALE_ELEMENTS, cache.headDim());
    float largest = 0;
    for (int d = first; d < end; d++) {
      largest = Math.max(largest, Math.abs(x.getAtIndex(JAVA_FLOAT, at + d))); // a NaN stays
    }
    float unit = largest / MAX_CODE;
    float scale = unit < NO_HALF ? Float.float16ToFloat(Float.floatToFloat16(unit)) : Float.NaN;
    Elements.set(DType.F16, to, panel + cache.scaleOffset(slot, first), 0, scale);
    float factor = scale > 0 ? 1 / unit : 0;
    for (int d = first; d < end; d++) {
      long index = key ? cache.keyIndex(slot, d) : cache.valueIndex(slot, d);
      byte code = factor > 0 ? (byte) Math.rint(x.getAtIndex(JAVA_FLOAT, at + d) * factor) : 0;
      to.set(JAVA_BYTE, panel + cache.codesOffset() + index, code);
    }
  }
}
