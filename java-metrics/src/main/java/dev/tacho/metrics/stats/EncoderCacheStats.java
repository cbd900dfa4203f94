package dev.tacho.metrics.stats;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Figures of an encoder cache connector since the snapshot before, by name in the order of first use. One thread. */
public final class EncoderCacheStats {
  private final Map<String, Number> figures = new LinkedHashMap<>();

  /** Adds to a figure, which is whole as long as only whole numbers are added. */
  public void add(String name, Number value) {
    figures.merge(name, value, EncoderCacheStats::sum);
  }

  /** Adds every figure of another. */
  public void add(EncoderCacheStats other) {
    other.figures.forEach(this::add);
  }

  /** Forgets everything. */
  public void clear() {
    figures.clear();
  }

  /** The figures. A view. */
  public Map<String, Number> figures() {
    return Collections.unmodifiableMap(figures);
  }

  private static Number sum(Number a, Number b) {
    if (a instanceof Double || b instanceof Double) {
      return a.doubleValue() + b.doubleValue();
    }
    return a.longValue() + b.longValue();
  }
}
