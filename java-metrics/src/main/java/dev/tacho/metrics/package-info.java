/**
 * The entry for engines: one {@link dev.tacho.metrics.EngineMetricsSource} an engine, which gives the writers of its
 * events and the text of its metrics.
 */
@NullMarked
package dev.tacho.metrics;

import org.jspecify.annotations.NullMarked;
