/**
 * Kernels on the JVM's Vector API, 128 to 512 bits wide. The only package that uses {@code jdk.incubator.vector}; its
 * provider alone does not. Internal.
 */
@NullMarked
package dev.tacho.engine.kernel.vector;

import org.jspecify.annotations.NullMarked;
