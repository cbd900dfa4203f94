package dev.tacho.engine;

import java.nio.file.Path;

/** The model that the repository brings along. */
final class BundledModel {
  private BundledModel() {}

  static Path path() {
    return Path.of(System.getProperty("tacho.root", "."), "models", "tacho-tales", "tacho-tales.gguf");
  }

  /** Its configuration, small: eight sequences of 512 tokens. */
  static EngineConfig.Builder config() {
    return EngineConfig.builder().model(path()).maxNumSeqs(8).maxNumBatchedTokens(512);
  }
}
