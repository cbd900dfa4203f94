/** The team of worker threads that kernels run on. Internal. */
@NullMarked
package dev.tacho.engine.parallel;

import org.jspecify.annotations.NullMarked;
