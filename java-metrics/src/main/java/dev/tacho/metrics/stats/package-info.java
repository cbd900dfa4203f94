/** What the numbers mean: from events to intervals, sums and samples. */
@NullMarked
package dev.tacho.metrics.stats;

import org.jspecify.annotations.NullMarked;
