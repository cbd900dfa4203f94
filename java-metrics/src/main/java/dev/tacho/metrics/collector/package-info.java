/** The one thread that drains every ring, turns events into statistics and hands them to the loggers. */
@NullMarked
package dev.tacho.metrics.collector;

import org.jspecify.annotations.NullMarked;
