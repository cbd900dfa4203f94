package dev.tacho.metrics.stats;

/**
 * What a step worked on. A request is context if it is new in the step or has no output yet, else generation.
 *
 * @param index number of the step
 * @param contextRequests context requests
 * @param contextTokens their tokens
 * @param generationRequests generation requests
 * @param generationTokens their tokens
 * @param elapsedMillis time that the model took
 * @param isDummy true for a step that only keeps pace with other replicas
 * @param encoderInputs inputs given to an encoder
 * @param encoderOutputs embeddings that it gave
 */
public record IterationDetails(
    long index,
    int contextRequests,
    int contextTokens,
    int generationRequests,
    int generationTokens,
    double elapsedMillis,
    boolean isDummy,
    int encoderInputs,
    int encoderOutputs) {}
