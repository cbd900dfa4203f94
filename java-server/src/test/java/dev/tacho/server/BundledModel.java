package dev.tacho.server;

import java.nio.file.Path;

/** Where the project and its bundled model lie. */
final class BundledModel {
  static final Path ROOT = Path.of(System.getProperty("tacho.root", ".."));
  static final Path FILE = ROOT.resolve("models/tacho-tales/tacho-tales.gguf");

  private BundledModel() {}
}
