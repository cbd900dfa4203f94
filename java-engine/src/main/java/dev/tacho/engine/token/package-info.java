/** From text to token ids and back. Internal. */
@NullMarked
package dev.tacho.engine.token;

import org.jspecify.annotations.NullMarked;
