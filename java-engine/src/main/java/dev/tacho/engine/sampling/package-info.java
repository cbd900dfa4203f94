/** From logits to a token id. Internal. */
@NullMarked
package dev.tacho.engine.sampling;

import org.jspecify.annotations.NullMarked;
