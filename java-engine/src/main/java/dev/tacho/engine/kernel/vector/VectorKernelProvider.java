package dev.tacho.engine.kernel.vector;

import com.sun.management.HotSpotDiagnosticMXBean;
import dev.tacho.engine.kernel.KernelProvider;
import java.lang.management.ManagementFactory;

/**
 * The Vector API kernels, where the incubator module is there and the JVM compiles vectors. This class mentions no type
 * of that module: without it, no class that does may be touched.
 */
public final class VectorKernelProvider implements KernelProvider {
  static final String ID = "vector";

  private static final String MODULE = "jdk.incubator.vector";
  private static final int SMALL_VECTOR_BITS = 256;

  @Override
  public String id() {
    return ID;
  }

  @Override
  public Found find() {
    boolean modulePresent = ModuleLayer.boot().findModule(MODULE).isPresent();
    return find(modulePresent, System.getProperty("java.vm.info", ""), fusedMultiplyAdd());
  }

  /** Whether the JIT uses the CPU's fused multiply-add; in software it takes thousands of times as long. */
  private static boolean fusedMultiplyAdd() {
    try {
      HotSpotDiagnosticMXBean jvm = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
      return jvm == null || Boolean.parseBoolean(jvm.getVMOption("UseFMA").getValue());
    } catch (IllegalArgumentException e) {
      return true; // a JVM without this flag decides for itself
    }
  }

  /**
   * Decides by what the JVM says of itself.
   *
   * @param modulePresent whether the incubator module was added
   * @param vmInfo the property java.vm.info
   * @param fusedMultiplyAdd whether the JIT uses the CPU's fused multiply-add
   */
  static Found find(boolean modulePresent, String vmInfo, boolean fusedMultiplyAdd) {
    if (!modulePresent) {
      return new Missing("the module " + MODULE + " is not there: start with --add-modules " + MODULE);
    }
    if (vmInfo.contains("interpreted") || vmInfo.contains("emulated-client")) {
      return new Missing(
          "this JVM does not compile vectors (" + vmInfo + "): start without -Xint and -XX:TieredStopAtLevel");
    }
    if (!fusedMultiplyAdd) {
      return new Missing("this CPU, or this JVM by its flags, has no fused multiply-add (AVX2 and FMA are needed)");
    }
    VectorKernels kernels = new VectorKernels();
    if (kernels.vectorBits() < SMALL_VECTOR_BITS) {
      return new Ready(kernels, "vectors have only " + kernels.vectorBits() + " bits on this CPU or by JVM flags");
    }
    return new Ready(kernels);
  }
}
