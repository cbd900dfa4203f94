package dev.tacho.engine.kernel.scalar;

import dev.tacho.engine.kernel.KernelProvider;

/** The plain Java kernels, which can be had everywhere. */
public final class ScalarKernelProvider implements KernelProvider {
  @Override
  public String id() {
    return ScalarKernels.ID;
  }

  @Override
  public Found find() {
    return new Ready(
        new ScalarKernels(), "plain Java without vectors, many times slower than native or vector kernels");
  }
}
