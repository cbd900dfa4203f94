package dev.tacho.metrics.prometheus;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** The text forms in which metrics are exposed. */
public enum ExpositionFormat {
  /** Prometheus text, the default. */
  TEXT_0_0_4("text/plain; version=0.0.4; charset=utf-8"),
  /** Prometheus text of the newer version, for clients that ask for it; the same lines. */
  TEXT_1_0_0("text/plain; version=1.0.0; charset=utf-8"),
  /** OpenMetrics text. */
  OPENMETRICS_1_0_0("application/openmetrics-text; version=1.0.0; charset=utf-8");

  private final String contentType;

  ExpositionFormat(String contentType) {
    this.contentType = contentType;
  }

  /**
   * The form that an HTTP client asks for: the first that it accepts of OpenMetrics 1.0.0 and text 1.0.0, else text
   * 0.0.4.
   *
   * @param accept value of the header Accept, empty if there is none
   */
  public static ExpositionFormat ofAccept(String accept) {
    for (String element : split(accept, ",")) {
      List<String> words = split(element, ";");
      boolean isNewest = words.contains("version=1.0.0");
      switch (words.get(0)) {
        case "application/openmetrics-text" -> {
          if (isNewest || words.stream().noneMatch(word -> word.startsWith("version="))) {
            return OPENMETRICS_1_0_0;
          }
        }
        case "text/plain" -> {
          if (isNewest) {
            return TEXT_1_0_0;
          }
        }
        default -> { }
      }
    }
    return TEXT_0_0_4;
  }

  /** The HTTP content type. */
  public String contentType() {
    return contentType;
  }

  private static List<String> split(String text, String separator) {
    return Arrays.stream(text.split(separator, -1)).map(word -> word.strip().toLowerCase(Locale.ROOT)).toList();
  }
}
