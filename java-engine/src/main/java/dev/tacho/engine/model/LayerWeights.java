package dev.tacho.engine.model;

import java.lang.foreign.MemorySegment;

/**
 * The weights of one layer of the Llama family, with E embedding, Q query, K key-value and F feed-forward elements.
 *
 * @param attentionNorm float32 [E]
 * @param query [Q][E]
 * @param key [K][E]
 * @param value [K][E]
 * @param attentionOutput [E][Q]
 * @param feedForwardNorm float32 [E]
 * @param gate [F][E]
 * @param up [F][E]
 * @param down [E][F]
 */
record LayerWeights(
    MemorySegment attentionNorm,
    Projection query,
    Projection key,
    Projection value,
    Projection attentionOutput,
    MemorySegment feedForwardNorm,
    Projection gate,
    Projection up,
    Projection down) {}
