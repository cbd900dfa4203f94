/** What is recorded: the events of requests and steps, and the byte layout of their records. */
@NullMarked
package dev.tacho.metrics.event;

import org.jspecify.annotations.NullMarked;
