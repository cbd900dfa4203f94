/** JMH benchmarks; RESULTS.md says machine, command and figure. */
@NullMarked
package dev.tacho.bench;

import org.jspecify.annotations.NullMarked;
