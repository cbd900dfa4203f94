/** Kernels on an NVIDIA GPU: so far the finding alone, which says why there are none. Internal. */
@NullMarked
package dev.tacho.engine.kernel.cuda;

import org.jspecify.annotations.NullMarked;
