/**
 * Kernels of the native library, called through the Foreign Function and Memory API. The only CPU package that calls
 * restricted methods. Internal.
 */
@NullMarked
package dev.tacho.engine.kernel.ffm;

import org.jspecify.annotations.NullMarked;
