/** Which sequences run in a step and with how many tokens; one thread owns all its state. Internal. */
@NullMarked
package dev.tacho.engine.scheduler;

import org.jspecify.annotations.NullMarked;
