/** Kernels in plain Java: the oracle of the others, and what runs where nothing else can. Internal. */
@NullMarked
package dev.tacho.engine.kernel.scalar;

import org.jspecify.annotations.NullMarked;
