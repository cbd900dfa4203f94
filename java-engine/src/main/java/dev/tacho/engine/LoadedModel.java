package dev.tacho.engine;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A model, loaded, with what each of its engines runs on. The group of engines that gets it owns it.
 *
 * @param codec text and token ids, for all engines
 * @param weights shared by all engines
 * @param engines what each engine runs on; closed by the engines, before this is
 * @param peakBench measures what an engine's threads can do; null if nobody knows how
 */
record LoadedModel(
    TextCodec codec, ModelWeights weights, List<EngineParts> engines, @Nullable PeakBench peakBench)
    implements AutoCloseable {
  /** Copies the list. */
  LoadedModel {
    engines = List.copyOf(engines);
  }

  /** What was found and set up, the same for each engine. */
  EngineInfo info() {
    return engines.getFirst().info();
  }

  /** Closes what the engines share. */
  @Override
  public void close() {
    try (CloseStack stack = new CloseStack()) {
      stack.push(weights);
      stack.push(codec);
    }
  }
}
