package dev.tacho.metrics.stats;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;

/** Where cached keys and values were found, from the accelerator outwards. */
public enum CacheSource {
  /** The accelerator's own memory: the prefix cache. */
  DEVICE,
  /** The host's memory. */
  HOST,
  /** Another engine. */
  P2P,
  /** A disk. */
  DISK,
  /** A connector that does not say. */
  EXTERNAL_UNSPECIFIED;

  /** The value of the label {@code source}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * The source of a set that lies farthest from the accelerator.
   *
   * @throws IllegalArgumentException if the set is empty
   */
  public static CacheSource outermost(Collection<CacheSource> sources) {
    return sources.stream().max(Comparator.naturalOrder())
        .orElseThrow(() -> new IllegalArgumentException("no cache source: the set is empty"));
  }
}
