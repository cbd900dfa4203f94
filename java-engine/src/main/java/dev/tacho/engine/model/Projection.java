package dev.tacho.engine.model;

import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * A linear map of a layer.
 *
 * @param weight [outputs][inputs], packed
 * @param bias float32 [outputs], or null
 */
record Projection(Weight weight, @Nullable MemorySegment bias) {}
