package dev.tacho.engine;

/** The weights that the engines of a group share, as far as sleep is concerned. One thread at a time. */
interface ModelWeights extends AutoCloseable {
  /**
   * Says whether {@link #discard} can work here.
   *
   * @throws UnsupportedException if not
   */
  void requireDiscardable();

  /** Gives the memory back to the system; no engine may compute until {@link #restore}. */
  void discard();

  /**
   * Loads the weights again.
   *
   * @throws ModelFormatException if the file is gone or another one
   */
  void restore();

  /** Gives the group's reference back. */
  @Override
  void close();
}
