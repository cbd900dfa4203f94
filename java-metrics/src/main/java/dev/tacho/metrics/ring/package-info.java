/** Off-heap rings between one producer and one consumer: the way of the events out of the engine. */
@NullMarked
package dev.tacho.metrics.ring;

import org.jspecify.annotations.NullMarked;
