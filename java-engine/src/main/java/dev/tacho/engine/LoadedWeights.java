package dev.tacho.engine;

import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.kernel.ffm.SystemPages;
import dev.tacho.engine.model.Weights;
import dev.tacho.engine.parallel.CpuBudget;
import dev.tacho.engine.parallel.WorkerTeam;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Weights from a file, which they can be loaded from again. */
final class LoadedWeights implements ModelWeights {
  private static final Logger LOG = LoggerFactory.getLogger(LoadedWeights.class);

  private final Path file;
  private final Weights weights;

  /**
   * @param file where they came from
   * @param weights one reference to them, which is given back by {@link #close}
   */
  LoadedWeights(Path file, Weights weights) {
    this.file = file;
    this.weights = weights;
  }

  @Override
  public void requireDiscardable() {
    SystemPages.requireSupport();
  }

  @Override
  public void discard() {
    // Held meanwhile: the engine may be closed at the same time.
    try (Weights held = weights.retain()) {
      held.discard(SystemPages::discard);
    }
  }

  @Override
  public void restore() {
    // A team of its own, as those of the engines belong to their runners; kernels write to unguarded addresses, so the
    // memory is held meanwhile.
    CpuBudget processors = CpuBudget.read();
    try (Weights held = weights.retain();
        GgufFile model = GgufFile.open(file);
        WorkerTeam team = new WorkerTeam("tacho-loader", processors.threads(), processors)) {
      held.reload(model, team, new LoadingProgress(System::nanoTime, LOG::info, SystemPages::release));
    }
  }

  @Override
  public void close() {
    weights.close();
  }
}
