package dev.tacho.engine;

import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.io.IOException;
import java.io.OutputStream;

/**
 * What the engine has measured, without any HTTP server. Any thread may ask, at any time; what had happened before the
 * call is in the answer. A closed engine has left its registry.
 */
public final class EngineMetrics {
  /** The text forms. */
  public enum Format {
    /** Prometheus text, version 0.0.4. */
    TEXT(ExpositionFormat.TEXT_0_0_4),
    /** OpenMetrics 1.0.0. */
    OPENMETRICS(ExpositionFormat.OPENMETRICS_1_0_0);

    private final ExpositionFormat exposition;

    Format(ExpositionFormat exposition) {
      this.exposition = exposition;
    }

    /**
     * The form for an HTTP client.
     *
     * @param accept value of the header Accept, empty if there is none
     */
    public static Format ofAccept(String accept) {
      return ExpositionFormat.ofAccept(accept) == ExpositionFormat.OPENMETRICS_1_0_0 ? OPENMETRICS : TEXT;
    }

    /** The HTTP content type. */
    public String contentType() {
      return exposition.contentType();
    }
  }

  private final MetricsRegistry registry;

  EngineMetrics(MetricsRegistry registry) {
    this.registry = registry;
  }

  /** All families of the registry in the Prometheus text format. */
  public String exposition() {
    return exposition(Format.TEXT);
  }

  /** All families of the registry in the given format. */
  public String exposition(Format format) {
    return registry.exposition(format.exposition);
  }

  /**
   * Writes all families of the registry in the given format, in UTF-8, without a copy of the text.
   *
   * @param out gets it in one call; stays open
   * @throws IOException if it cannot be written to
   */
  public void writeTo(Format format, OutputStream out) throws IOException {
    registry.writeTo(format.exposition, out);
  }

  /** All values of the registry, typed. */
  public MetricsSnapshot snapshot() {
    return registry.snapshot();
  }

  /** The registry: the engine's own, or the one that it was opened with. Guests may register there. */
  public MetricsRegistry registry() {
    return registry;
  }
}
