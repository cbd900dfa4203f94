/** Estimated floating point operations and memory traffic of a step, from the shapes of model and batch. */
@NullMarked
package dev.tacho.metrics.perf;

import org.jspecify.annotations.NullMarked;
