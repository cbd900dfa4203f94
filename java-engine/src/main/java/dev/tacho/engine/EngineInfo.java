package dev.tacho.engine;

import java.util.List;

/**
 * What an engine found and set up when it was opened.
 *
 * @param modelName the served name
 * @param architecture the model's architecture, as its file calls it
 * @param parameters elements of all weights together
 * @param weightType the type that most of the weights' bytes have in the file, e.g. {@code Q8_0}
 * @param vocabSize tokens of the vocabulary
 * @param maxModelLen tokens of prompt and output together at most
 * @param kernels what computes, e.g. {@code native avx512_bf16}
 * @param passedOver why better kernels were not taken, a sentence each
 * @param threads worker threads
 * @param numKvBlocks blocks of the KV cache, the null block included
 * @param kvCacheDtype type of keys and values
 * @param weights memory of the weights
 * @param kvCache memory of the KV cache
 * @param workspace memory of activations and scratch
 */
public record EngineInfo(
    String modelName,
    String architecture,
    long parameters,
    String weightType,
    int vocabSize,
    int maxModelLen,
    String kernels,
    List<String> passedOver,
    int threads,
    int numKvBlocks,
    String kvCacheDtype,
    MemorySize weights,
    MemorySize kvCache,
    MemorySize workspace) {
  /** Copies the list. */
  public EngineInfo {
    passedOver = List.copyOf(passedOver);
  }
}
