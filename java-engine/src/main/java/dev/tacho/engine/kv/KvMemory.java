package dev.tacho.engine.kv;

import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.KvCacheLayer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/**
 * The memory of the KV cache: one {@link KvCacheLayer} a layer, off-heap. Any thread may read it between the start of
 * the owner and {@link #close()}; the owner closes it after the last step has been awaited, because kernels keep raw
 * addresses that no arena guards.
 *
 * <p>The memory is zeroed when it is allocated and never again: a reused block holds what its last owner left, which no
 * kernel may read before it is written. It is one piece, so that large pages are filled; the native kernels' takes a
 * page of the system's when a block in it is first written, so that a large cache does not make a start slow.
 */
public final class KvMemory implements AutoCloseable {
  private static final long ALIGNMENT_BYTES = 64;

  private final Arena arena;
  private final MemorySegment memory;
  private final KvCacheLayer[] layers;
  private final long bytes;
  private boolean closed;

  /**
   * Allocates.
   *
   * @param layout shape of a block
   * @param numBlocks blocks, the null block 0 included
   * @param kernels that will use it
   * @throws IllegalStateException if the system or the JVM does not give the memory, with the bytes
   */
  @SuppressWarnings("MustBeClosedChecker") // close() closes it
  public KvMemory(KvLayout layout, int numBlocks, Kernels kernels) {
    if (numBlocks < 2) {
      throw new IllegalArgumentException("KV cache of " + numBlocks + " blocks, at least 2 are needed");
    }
    bytes = Math.multiplyExact(layout.blockBytes(), numBlocks);
    long halfLayerBytes = bytes / layout.numLayers() / 2;
    long paddedBytes = Math.ceilDiv(halfLayerBytes, ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    layers = new KvCacheLayer[layout.numLayers()];
    arena = Arena.ofShared();
    try {
      memory = kernels.allocate(arena, Math.multiplyExact(paddedBytes, 2L * layers.length));
      for (int i = 0; i < layers.length; i++) {
        MemorySegment k = memory.asSlice(2L * i * paddedBytes, halfLayerBytes);
        MemorySegment v = memory.asSlice((2L * i + 1) * paddedBytes, halfLayerBytes);
        layers[i] = new KvCacheLayer(layout.dtype(), numBlocks, layout.numKvHeads(), layout.headDim(), k, v);
      }
    } catch (OutOfMemoryError e) {
      arena.close();
      throw new IllegalStateException(
          "the KV cache needs "
              + bytes
              + " bytes ("
              + numBlocks
              + " blocks of "
              + layout.blockBytes()
              + "), which were not to be had; lower kv_cache_memory,"
              + " or raise -XX:MaxDirectMemorySize if that is the limit",
          e);
    }
  }

  /** Layers. */
  public int numLayers() {
    return layers.length;
  }

  /** Cache of layer {@code i}. */
  public KvCacheLayer layer(int i) {
    return layers[i];
  }

  /** Bytes of all layers. */
  public long bytes() {
    return bytes;
  }

  /**
   * Hands over the memory of all layers, whose contents nobody needs any more; it stays allocated. No step may be in
   * flight, and no block in use or cached.
   *
   * @param discard drops the contents of a segment
   */
  public void discard(Consumer<MemorySegment> discard) {
    discard.accept(memory);
  }

  /** Gives the memory back; further calls do nothing. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      arena.close();
    }
  }
}
