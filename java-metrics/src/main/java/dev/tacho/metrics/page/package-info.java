/** Shared memory of numbers: counters that many threads add to, and the values that are published. */
@NullMarked
package dev.tacho.metrics.page;

import org.jspecify.annotations.NullMarked;
