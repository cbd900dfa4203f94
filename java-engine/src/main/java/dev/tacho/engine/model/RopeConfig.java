package dev.tacho.engine.model;

import dev.tacho.engine.kernel.RopePairing;

/**
 * How a model turns queries and keys by their position. The angle of pair i at position p is {@code p / linearFactor *
 * base^(-2 i / dimensions) / factor[i]}, where the factors, if any, come from the tensor {@code rope_freqs.weight}
 * (Llama 3.1 and later).
 *
 * @param pairing which two elements turn together
 * @param dimensions elements of a head that turn, the first ones; even
 * @param base wave lengths grow from 2 pi to 2 pi * base
 * @param linearFactor positions are divided by it; 1 for none
 */
public record RopeConfig(RopePairing pairing, int dimensions, double base, double linearFactor) {}
