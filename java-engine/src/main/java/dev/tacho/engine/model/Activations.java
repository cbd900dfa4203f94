package dev.tacho.engine.model;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * What the layers hand to each other within a step: float32, row-major, one row a token, sized once for the largest
 * step. With E embedding, Q query, K key-value, F feed-forward and V vocabulary elements, R rope pairs:
 *
 * <pre>
 *   hidden    [maxTokens][E]     the residual stream
 *   normed    [maxTokens][E]     what the projections of a half layer read, then what they add to the stream
 *   query     [maxTokens][Q]     attended [maxTokens][Q]
 *   key       [maxTokens][K]     value    [maxTokens][K]
 *   gate      [maxTokens][F]     up       [maxTokens][F]
 *   cosSin    [maxTokens][R][2]
 *   last      [maxSampledRows][E]     logits [maxSampledRows][V]
 * </pre>
 *
 * Read and written by the members of a team between its barriers; owned by the arena.
 */
record Activations(
    MemorySegment hidden,
    MemorySegment normed,
    MemorySegment query,
    MemorySegment key,
    MemorySegment value,
    MemorySegment attended,
    MemorySegment gate,
    MemorySegment up,
    MemorySegment cosSin,
    MemorySegment last,
    MemorySegment logits) {
  private static final int ALIGNMENT_BYTES = 64;

  /** Takes the memory for the largest step. */
  static Activations allocate(Arena arena, ModelConfig config, RunnerLimits limits) {
    int tokens = limits.maxTokens();
    int rows = limits.maxSampledRows();
    return new Activations(
        floats(arena, tokens, config.embeddingLength()),
        floats(arena, tokens, config.embeddingLength()),
        floats(arena, tokens, config.queryLength()),
        floats(arena, tokens, config.keyValueLength()),
        floats(arena, tokens, config.keyValueLength()),
        floats(arena, tokens, config.queryLength()),
        floats(arena, tokens, config.feedForwardLength()),
        floats(arena, tokens, config.feedForwardLength()),
        floats(arena, tokens, config.rope().dimensions()),
        floats(arena, rows, config.embeddingLength()),
        floats(arena, rows, config.vocabSize()));
  }

  /** Bytes that {@link #allocate} takes. */
  static long bytes(ModelConfig config, RunnerLimits limits) {
    long tokenFloats =
        2L * config.embeddingLength()
            + 2L * config.queryLength()
            + 2L * config.keyValueLength()
            + 2L * config.feedForwardLength()
            + config.rope().dimensions();
    long rowFloats = (long) config.embeddingLength() + config.vocabSize();
    long floats =
        Math.addExact(
            Math.multiplyExact(limits.maxTokens(), tokenFloats),
            Math.multiplyExact(limits.maxSampledRows(), rowFloats));
    return Math.multiplyExact(floats, Float.BYTES);
  }

  private static MemorySegment floats(Arena arena, int rows, int columns) {
    long bytes = Math.multiplyExact((long) rows * columns, Float.BYTES);
    return arena.allocate(bytes, ALIGNMENT_BYTES);
  }
}
