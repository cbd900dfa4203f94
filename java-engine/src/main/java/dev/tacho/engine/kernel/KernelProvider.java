package dev.tacho.engine.kernel;

/**
 * Finds out whether one way of running kernels can be had here. Implementations are registered for {@link
 * java.util.ServiceLoader} and have a public constructor without arguments that does nothing.
 */
public interface KernelProvider {
  /** The option word: {@code scalar}, {@code vector}, {@code native} or {@code cuda}. */
  String id();

  /** Looks; throws nothing for what the machine or the JVM lacks. */
  Found find();

  /** The kernels, or why they cannot be had. */
  sealed interface Found {}

  /**
   * They can be had.
   *
   * @param kernels ready to use
   * @param caution why they will be slow here, or the empty string
   */
  record Ready(Kernels kernels, String caution) implements Found {
    /** Without a caution. */
    public Ready(Kernels kernels) {
      this(kernels, "");
    }
  }

  /**
   * They cannot.
   *
   * @param reason in words, with what would mend it
   */
  record Missing(String reason) implements Found {}
}
