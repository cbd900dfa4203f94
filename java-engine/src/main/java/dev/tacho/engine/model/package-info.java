/** Weights, architectures, and the runner that launches and awaits a step. Internal. */
@NullMarked
package dev.tacho.engine.model;

import org.jspecify.annotations.NullMarked;
