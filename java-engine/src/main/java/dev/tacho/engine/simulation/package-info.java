/** The scheduler on virtual time: capacity planning with the code that will run. Internal. */
@NullMarked
package dev.tacho.engine.simulation;

import org.jspecify.annotations.NullMarked;
