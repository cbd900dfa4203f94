package dev.tacho.engine.kernel;

/** Finds out whether one way of running kernels can be had here. */
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
   */
  record Ready(Kernels kernels) implements Found {}

  /**
   * They cannot.
   *
   * @param reason in words, with what would mend it
   */
  record Missing(String reason) implements Found {}
}
