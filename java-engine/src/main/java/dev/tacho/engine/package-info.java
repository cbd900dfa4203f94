/** The public API: open an engine, submit requests, read tokens, timings and metrics. */
@NullMarked
package dev.tacho.engine;

import org.jspecify.annotations.NullMarked;
