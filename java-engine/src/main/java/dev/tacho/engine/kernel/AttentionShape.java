package dev.tacho.engine.kernel;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * What attention needs to know of a layer beside its cache.
 *
 * @param numHeads query heads, a multiple of numKvHeads
 * @param numKvHeads heads of K and V; query head h reads kv head h / (numHeads / numKvHeads)
 * @param headDim elements of a head
 * @param scale factor of q . k
 * @param window keys that a query sees, itself included; 0 for all
 * @param softcap scores become softcap * tanh(score / softcap); 0 for none
 * @param sinks float [numHeads] whose exp is added to the softmax sum alone, or null
 */
public record AttentionShape(
    int numHeads, int numKvHeads, int headDim, float scale, int window, float softcap, @Nullable MemorySegment sinks) {
  /** Checks the shape. */
  public AttentionShape {
    if (numHeads <= 0 || numKvHeads <= 0 || numHeads % numKvHeads != 0) {
      throw new IllegalArgumentException(numHeads + " heads are no multiple of " + numKvHeads + " kv heads");
    }
    if (headDim <= 0 || headDim % 2 != 0 || headDim > 512) {
      throw new IllegalArgumentException("head size " + headDim + ", expected an even number in [2, 512]");
    }
    if (window < 0 || !(softcap >= 0) || !Float.isFinite(scale)) {
      throw new IllegalArgumentException("window " + window + ", softcap " + softcap + ", scale " + scale);
    }
  }

  /** Query heads that share a kv head. */
  public int groupSize() {
    return numHeads / numKvHeads;
  }

  /** The first key that a query at {@code position} sees; the last one is its own. */
  public int firstKey(int position) {
    return window == 0 ? 0 : Math.max(0, position - window + 1);
  }
}
