/**
 * The operations of a model step, their contracts, and the choice among the providers that carry them out.
 * Internal.
 */
@NullMarked
package dev.tacho.engine.kernel;

import org.jspecify.annotations.NullMarked;
