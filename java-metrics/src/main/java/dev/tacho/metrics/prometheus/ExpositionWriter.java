package dev.tacho.metrics.prometheus;

import io.prometheus.client.Collector.MetricFamilySamples;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Writes the text of engines and guests: families in the order of the catalog, then guests; label names sorted; numbers
 * as in {@link NumberFormat}; no {@code _created} samples. In OpenMetrics a colon in a name stays a colon. One thread
 * at a time.
 */
final class ExpositionWriter {
  private final TextBuffer out;

  /**
   * A writer.
   *
   * @param out what it writes into, from the start each time
   */
  ExpositionWriter(TextBuffer out) {
    this.out = out;
  }

  /**
   * Writes a whole exposition.
   *
   * @param engines with the values to write
   * @param guests other families
   * @param format which text form
   */
  TextBuffer write(List<EngineText> engines, Enumeration<MetricFamilySamples> guests, ExpositionFormat format) {
    out.clear();
    boolean openMetrics = format == ExpositionFormat.OPENMETRICS_1_0_0;
    for (MetricFamily family : MetricCatalog.families()) {
      writeFamily(family, engines, openMetrics);
    }
    while (guests.hasMoreElements()) {
      writeGuest(guests.nextElement(), openMetrics);
    }
    if (openMetrics) {
      out.put("# EOF\n");
    }
    return out;
  }

  private void writeFamily(MetricFamily family, List<EngineText> engines, boolean openMetrics) {
    if (isIn(family, engines)) {
      String name = openMetrics ? family.baseName() : family.exposedName();
      head(name, family.type().text(), family.help(), openMetrics);
      EngineText.visit(family, engines, (engine, child) -> engine.write(out, family, child, engines, openMetrics));
    }
  }

  private static boolean isIn(MetricFamily family, List<EngineText> engines) {
    for (EngineText engine : engines) {
      if (engine.layout().has(family)) {
        return true;
      }
    }
    return false;
  }

  private void writeGuest(MetricFamilySamples family, boolean openMetrics) {
    String name = family.name;
    String type = switch (family.type) {
      case COUNTER -> "counter";
      case SUMMARY -> "summary";
      case HISTOGRAM -> "histogram";
      case INFO -> openMetrics ? "info" : "gauge";
      case STATE_SET -> openMetrics ? "stateset" : "gauge";
      case UNKNOWN -> openMetrics ? "unknown" : "untyped";
      case GAUGE_HISTOGRAM -> openMetrics ? "gaugehistogram" : "histogram";
      case GAUGE -> "gauge";
    };
    if (!openMetrics) {
      name = switch (family.type) {
        case COUNTER -> name + "_total";
        case INFO -> name + "_info";
        default -> name;
      };
    }
    head(name, type, family.help, openMetrics);
    for (MetricFamilySamples.Sample sample : family.samples) {
      if (!sample.name.equals(family.name + "_created")) {
        writeSample(sample, openMetrics);
      }
    }
  }

  private void writeSample(MetricFamilySamples.Sample sample, boolean openMetrics) {
    Map<String, String> labels = new LinkedHashMap<>();
    for (int i = 0; i < sample.labelNames.size(); i++) {
      String label = sample.labelNames.get(i);
      labels.put(label, label.equals("le") || label.equals("quantile") ? bound(sample.labelValues.get(i))
          : sample.labelValues.get(i));
    }
    out.put(EngineText.prefix(sample.name, labels)).put(sample.value);
    Long timestamp = sample.timestampMs;
    if (timestamp != null) {
      out.put(' ');
      if (openMetrics) {
        out.put(timestamp / 1e3);
      } else {
        out.put(timestamp.toString());
      }
    }
    out.put('\n');
  }

  private static String bound(String text) {
    if (text.equals("+Inf")) {
      return text;
    }
    try {
      return NumberFormat.format(Double.parseDouble(text));
    } catch (NumberFormatException e) {
      return text;
    }
  }

  private void head(String name, String type, @Nullable String help, boolean openMetrics) {
    out.put("# HELP ").put(name).put(' ').put(escapeHelp(help == null ? "" : help, openMetrics)).put('\n');
    out.put("# TYPE ").put(name).put(' ').put(type).put('\n');
  }

  private static String escapeHelp(String help, boolean openMetrics) {
    StringBuilder text = new StringBuilder(help.length());
    if (openMetrics) {
      escapeValue(text, help);
      return text.toString();
    }
    for (int i = 0; i < help.length(); i++) {
      char c = help.charAt(i);
      switch (c) {
        case '\\' -> text.append("\\\\");
        case '\n' -> text.append("\\n");
        default -> text.append(c);
      }
    }
    return text.toString();
  }

  /** Appends a label value with backslash, double quote and line end escaped. */
  static void escapeValue(StringBuilder text, String value) {
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      switch (c) {
        case '\\' -> text.append("\\\\");
        case '"' -> text.append("\\\"");
        case '\n' -> text.append("\\n");
        default -> text.append(c);
      }
    }
  }
}
