package dev.tacho.engine.model;

import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Kernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;

/**
 * What the layers hand to each other within a step: float32, row-major, one row a token, sized once for the largest
 * step. With E embedding, Q query, K key-value, F feed-forward and V vocabulary elements, R rope pairs:
 *
 * <pre>
 *   hidden    [maxTokens][E]     the residual stream
 *   normed    [maxTokens][E]     what the projections of a half layer read
 *   query     [maxTokens][Q]     attended [maxTokens][Q]
 *   key       [maxTokens][K]     value    [maxTokens][K]
 *   gate      [maxTokens][F]     up       [maxTokens][F]
 *   cosSin    [maxTokens][R][2]
 *   last      [maxSampledRows][E]     logits [maxSampledRows][V]
 *   packed    [maxTokens][bytes of a row of E or Q], for each packed form that the kernels multiply
 *   packed    [maxTokens][bytes of a row of F], likewise
 * </pre>
 *
 * {@code normed}, {@code attended}, {@code gate} and {@code last} are read by matmuls, as floats or in a packed form;
 * {@code gate} has packed memory of its own, since a member may pack its columns while another still reads
 * {@code normed}. Read and written by the members of a team between its barriers; owned by the arena. Of a single row
 * each member has what is normed for itself: {@link #ownRow}.
 */
record Activations(
    MemorySegment hidden,
    MatmulInput normed,
    MemorySegment query,
    MemorySegment key,
    MemorySegment value,
    MatmulInput attended,
    MatmulInput gate,
    MemorySegment up,
    MemorySegment cosSin,
    MatmulInput last,
    MemorySegment logits) {
  private static final int ALIGNMENT_BYTES = 64;

  /** Pieces that are aligned each: those of the list above, two packed ones for each form. */
  private static final int MAX_PIECES = 11 + 2 * ActivationFormat.values().length;

  /**
   * Memory of one packed form.
   *
   * @param data [maxTokens] rows of the longest one's bytes
   * @param kernels say how long a row is
   */
  record PackedMemory(MemorySegment data, Kernels kernels) {
    /** Rows of k elements, one behind the other. */
    ActivationRows rows(ActivationFormat format, int k) {
      return new ActivationRows(format, k, apart(kernels.activationRowBytes(format, k)), data);
    }
  }

  /** Takes the memory for the largest step, in one piece: what no step has needed yet takes no page of the system's. */
  static Activations allocate(Arena owner, ModelConfig config, RunnerLimits limits, Kernels kernels) {
    SegmentAllocator arena = SegmentAllocator.slicingAllocator(kernels.allocate(owner, bytes(config, limits, kernels)));
    int tokens = limits.maxTokens();
    int rows = limits.maxSampledRows();
    int embedding = config.embeddingLength();
    int query = config.queryLength();
    int feedForward = config.feedForwardLength();
    Map<ActivationFormat, PackedMemory> packed = packed(arena, tokens, Math.max(embedding, query), kernels);
    Map<ActivationFormat, PackedMemory> packedGate = packed(arena, tokens, feedForward, kernels);
    return new Activations(
        floats(arena, tokens, embedding),
        new MatmulInput(floats(arena, tokens, embedding), embedding, packed),
        floats(arena, tokens, query),
        floats(arena, tokens, config.keyValueLength()),
        floats(arena, tokens, config.keyValueLength()),
        new MatmulInput(floats(arena, tokens, query), query, packed),
        new MatmulInput(floats(arena, tokens, feedForward), feedForward, packedGate),
        floats(arena, tokens, feedForward),
        floats(arena, tokens, config.rope().dimensions()),
        new MatmulInput(floats(arena, rows, embedding), embedding, packed),
        floats(arena, rows, config.vocabSize()));
  }

  /** Bytes that {@link #allocate} takes. */
  static long bytes(ModelConfig config, RunnerLimits limits, Kernels kernels) {
    long tokenBytes =
        Float.BYTES
            * (2L * config.embeddingLength()
                + 2L * config.queryLength()
                + 2L * config.keyValueLength()
                + 2L * config.feedForwardLength()
                + config.rope().dimensions());
    for (ActivationFormat format : packedFormats(kernels)) {
      int longest = Math.max(config.embeddingLength(), config.queryLength());
      tokenBytes = Math.addExact(tokenBytes, rowBytes(format, longest, kernels));
      tokenBytes = Math.addExact(tokenBytes, rowBytes(format, config.feedForwardLength(), kernels));
    }
    long rowBytes = Float.BYTES * ((long) config.embeddingLength() + config.vocabSize());
    long bytes =
        Math.addExact(
            Math.multiplyExact(limits.maxTokens(), tokenBytes), Math.multiplyExact(limits.maxSampledRows(), rowBytes));
    return Math.addExact(bytes, (long) MAX_PIECES * ALIGNMENT_BYTES);
  }

  /** A row of E elements that one member alone writes and reads. */
  static MatmulInput ownRow(Arena owner, ModelConfig config, Kernels kernels) {
    int embedding = config.embeddingLength();
    return new MatmulInput(floats(owner, 1, embedding), embedding, packed(owner, 1, embedding, kernels));
  }

  /** Bytes that {@link #ownRow} takes. */
  static long ownRowBytes(ModelConfig config, Kernels kernels) {
    long bytes = (long) Float.BYTES * config.embeddingLength();
    Set<ActivationFormat> formats = packedFormats(kernels);
    for (ActivationFormat format : formats) {
      bytes = Math.addExact(bytes, rowBytes(format, config.embeddingLength(), kernels));
    }
    return Math.addExact(bytes, (1L + formats.size()) * ALIGNMENT_BYTES);
  }

  private static Set<ActivationFormat> packedFormats(Kernels kernels) {
    Set<ActivationFormat> formats = EnumSet.noneOf(ActivationFormat.class);
    for (DType dtype : DType.values()) {
      formats.add(kernels.activationFormat(dtype));
    }
    formats.remove(ActivationFormat.FLOAT32);
    return formats;
  }

  private static Map<ActivationFormat, PackedMemory> packed(
      SegmentAllocator arena, int rows, int longest, Kernels kernels) {
    Map<ActivationFormat, PackedMemory> packed = new EnumMap<>(ActivationFormat.class);
    for (ActivationFormat format : packedFormats(kernels)) {
      long bytes = Math.multiplyExact((long) rows, rowBytes(format, longest, kernels));
      packed.put(format, new PackedMemory(arena.allocate(bytes, ALIGNMENT_BYTES), kernels));
    }
    return packed;
  }

  /** Rows of a form are whole blocks of it, if there is a matmul that reads them in that form. */
  private static long rowBytes(ActivationFormat format, int longest, Kernels kernels) {
    int block = format.blockElements();
    return apart(kernels.activationRowBytes(format, Math.ceilDiv(longest, block) * block));
  }

  /** An odd number of cache lines: rows a power of two apart would all lie in the same few places of a cache. */
  private static long apart(long bytes) {
    return (Math.addExact(bytes, ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES | 1) * ALIGNMENT_BYTES;
  }

  private static MemorySegment floats(SegmentAllocator arena, int rows, int columns) {
    long bytes = Math.multiplyExact((long) rows * columns, Float.BYTES);
    return arena.allocate(bytes, ALIGNMENT_BYTES);
  }
}
