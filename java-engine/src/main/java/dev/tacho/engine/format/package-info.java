/** Readers of model files. Internal. */
@NullMarked
package dev.tacho.engine.format;

import org.jspecify.annotations.NullMarked;
