package dev.tacho.metrics.collector;

import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.RequestTimeline;
import java.util.HashMap;
import java.util.Map;

/**
 * Requests of several sequences: the most tokens that one of them generated and their number are observed once, when
 * the last of them finishes. A sequence that ends in another way is taken off; if it was the last one open, nothing is
 * observed. One thread.
 */
final class ParentTable {
  private final Map<Integer, Parent> parents = new HashMap<>();

  /** A sequence finished with an output. */
  void finished(RequestTimeline child, IterationStats iteration) {
    if (child.parent() == 0) {
      iteration.maxGenerationTokens().add(child.generatedTokens());
      iteration.paramsN().add(1);
      return;
    }
    Parent parent = open(child);
    parent.maxTokens = Math.max(parent.maxTokens, child.generatedTokens());
    if (--parent.open == 0) {
      iteration.maxGenerationTokens().add(parent.maxTokens);
      iteration.paramsN().add(child.n());
      parents.remove(child.parent());
    }
  }

  /** A sequence ended without an output. */
  void ended(RequestTimeline child) {
    if (child.parent() != 0 && --open(child).open == 0) {
      parents.remove(child.parent());
    }
  }

  private Parent open(RequestTimeline child) {
    return parents.computeIfAbsent(child.parent(), key -> new Parent(Math.max(1, child.n())));
  }

  /** What is known of a request whose sequences have begun to end. */
  private static final class Parent {
    int open;
    int maxTokens;

    Parent(int open) {
      this.open = open;
    }
  }
}
