package dev.tacho.engine.kernel.cuda;

import dev.tacho.engine.kernel.KernelProvider;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Says why kernels on an NVIDIA GPU cannot be had: this build carries no libtacho_cuda.so, and often there is no device
 * either. Loads nothing and asks no driver.
 */
public final class CudaKernelProvider implements KernelProvider {
  static final String ID = "cuda";

  private static final Path DRIVER = Path.of("/dev/nvidiactl");

  @Override
  public String id() {
    return ID;
  }

  @Override
  public Found find() {
    String device = Files.exists(DRIVER) ? "" : ", and this machine shows no NVIDIA device (" + DRIVER + ")";
    return new Missing("this build has no CUDA kernels (libtacho_cuda.so)" + device);
  }
}
