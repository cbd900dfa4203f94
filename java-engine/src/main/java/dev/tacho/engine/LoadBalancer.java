package dev.tacho.engine;

import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicInteger;

/** Chooses the engine of a group that gets the next request. Any thread. */
final class LoadBalancer {
  private final List<EngineRuntime> engines;
  private final AtomicInteger picks = new AtomicInteger();

  LoadBalancer(List<EngineRuntime> engines) {
    this.engines = List.copyOf(engines);
  }

  /**
   * The engine with the smallest load; among equals the first behind a start that moves on with each choice. One that
   * accepts nothing is chosen only if none does.
   *
   * @param rank the number of the engine that it must be, if any
   * @throws InvalidRequestException if there is no such engine
   */
  EngineRuntime pick(OptionalInt rank) {
    int count = engines.size();
    if (rank.isPresent()) {
      if (rank.getAsInt() >= count) {
        throw new InvalidRequestException(
            "data_parallel_rank", "must be below the number of engines, " + count + ", is " + rank.getAsInt());
      }
      return engines.get(rank.getAsInt());
    }
    int start = Math.floorMod(picks.getAndIncrement(), count);
    EngineRuntime best = engines.get(start);
    double bestScore = Double.POSITIVE_INFINITY;
    for (int i = 0; i < count; i++) {
      EngineRuntime engine = engines.get((start + i) % count);
      double score = engine.state().accepts() ? engine.load().score() : Double.POSITIVE_INFINITY;
      if (score < bestScore) {
        best = engine;
        bestScore = score;
      }
    }
    return best;
  }
}
