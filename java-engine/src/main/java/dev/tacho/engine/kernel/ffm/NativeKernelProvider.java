package dev.tacho.engine.kernel.ffm;

import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.kernel.KernelProvider;

/**
 * The kernels of the native library, on the best instruction set that the CPU has and {@code TACHO_MAX_ISA} allows. An
 * unknown word in {@code TACHO_MAX_ISA} is an {@link UnsupportedException} rather than a reason to go without: the user
 * asked for something.
 */
public final class NativeKernelProvider implements KernelProvider {
  /** The environment variable that limits the instruction set. */
  public static final String MAX_ISA_VARIABLE = "TACHO_MAX_ISA";

  private final String maxIsa;

  /** Limited by the environment. */
  public NativeKernelProvider() {
    this(System.getenv().getOrDefault(MAX_ISA_VARIABLE, ""));
  }

  /**
   * Limited by a word.
   *
   * @param maxIsa an {@link InstructionSet#word()}; empty for no limit
   */
  public NativeKernelProvider(String maxIsa) {
    this.maxIsa = maxIsa;
  }

  /**
   * Begins to load the library and to bind its functions, on a thread of its own; who asks for the kernels then waits
   * for the rest of it alone. A failure is left for that one. Returns at once; any thread, any number of times.
   */
  public static void preload() {
    Thread.ofPlatform()
        .name("tacho-kernels-library")
        .daemon()
        .start(
            () -> {
              try {
                new NativeKernelProvider().find();
              } catch (UnsupportedException unheard) {
                // Whoever chooses kernels meets it again.
              }
            });
  }

  @Override
  public String id() {
    return NativeKernels.ID;
  }

  @Override
  public Found find() {
    try {
      NativeLibrary.ensureLoaded();
    } catch (LibraryUnavailableException e) {
      return new Missing(e.reason());
    }
    return new Ready(NativeKernels.upTo(maxIsa));
  }
}
