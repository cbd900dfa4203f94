package dev.tacho.engine;

/** Weights without weights, which count what is done to them. One thread. */
final class ScriptedWeights implements ModelWeights {
  int discarded;
  int restored;
  int closed;
  boolean gone;

  @Override
  public void requireDiscardable() {}

  @Override
  public void discard() {
    if (closed > 0) {
      throw new IllegalStateException("weights are closed already");
    }
    discarded++;
  }

  @Override
  public void restore() {
    if (gone) {
      throw new ModelFormatException("scripted.gguf", -1, "the file", "a model", "none");
    }
    restored++;
  }

  @Override
  public void close() {
    closed++;
  }
}
