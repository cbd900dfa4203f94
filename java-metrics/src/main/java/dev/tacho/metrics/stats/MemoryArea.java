package dev.tacho.metrics.stats;

import java.util.Locale;

/** What an engine holds memory outside the heap for. */
public enum MemoryArea {
  /** The model's weights. */
  WEIGHTS,
  /** Cached keys and values. */
  KV_CACHE,
  /** Activations and buffers of a step. */
  SCRATCH,
  /** Event rings and pages. */
  METRICS;

  /** The value of the label {@code area}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
