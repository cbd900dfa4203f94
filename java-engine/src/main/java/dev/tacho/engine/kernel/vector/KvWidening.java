package dev.tacho.engine.kernel.vector;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.KvCacheLayer;
import java.lang.foreign.MemorySegment;

/** Turns panels of the KV cache into floats in another place, in the same order. Stateless. */
final class KvWidening {
  private static final int BLOCK = KvCacheLayer.BLOCK_TOKENS;

  private KvWidening() {}

  /** The panel of K at a byte offset, [headDim][16]. */
  static void keys(KvCacheLayer cache, long panel, MemorySegment floats, long at) {
    switch (cache.dtype()) {
      case Q8_0 -> scaledKeys(cache, panel, floats, at);
      default -> Widening.widen(cache.dtype(), cache.k(), panel, BLOCK * cache.headDim(), floats, at);
    }
  }

  /** The panel of V at a byte offset, [16][headDim]. */
  static void values(KvCacheLayer cache, long panel, MemorySegment floats, long at) {
    switch (cache.dtype()) {
      case Q8_0 -> scaledValues(cache, panel, floats, at);
      default -> Widening.widen(cache.dtype(), cache.v(), panel, BLOCK * cache.headDim(), floats, at);
    }
  }

  /* Codes one by one: C2 leaves vectors of bytes on the heap where it does not inline. */

  private static void scaledKeys(KvCacheLayer cache, long panel, MemorySegment floats, long at) {
    MemorySegment k = cache.k();
    long codes = panel + cache.codesOffset();
    int headDim = cache.headDim();
    for (int first = 0; first < headDim; first += KvCacheLayer.SCALE_ELEMENTS) {
      int end = Math.min(first + KvCacheLayer.SCALE_ELEMENTS, headDim);
      for (int token = 0; token < BLOCK; token++) {
        float scale = Elements.f16(k, panel + cache.scaleOffset(token, first));
        for (long i = (long) first * BLOCK + token; i < (long) end * BLOCK; i += BLOCK) {
          floats.set(JAVA_FLOAT, at + 4L * i, scale * k.get(JAVA_BYTE, codes + i));
        }
      }
    }
  }

  private static void scaledValues(KvCacheLayer cache, long panel, MemorySegment floats, long at) {
    MemorySegment v = cache.v();
    int headDim = cache.headDim();
    for (int token = 0; token < BLOCK; token++) {
      long codes = panel + cache.codesOffset() + (long) token * headDim;
      long row = at + 4L * token * headDim;
      for (int first = 0; first < headDim; first += KvCacheLayer.SCALE_ELEMENTS) {
        float scale = Elements.f16(v, panel + cache.scaleOffset(token, first));
        int end = Math.min(first + KvCacheLayer.SCALE_ELEMENTS, headDim);
        for (int d = first; d < end; d++) {
          floats.set(JAVA_FLOAT, row + 4L * d, scale * v.get(JAVA_BYTE, codes + d));
        }
      }
    }
  }
}
