package dev.tacho.engine;

import dev.tacho.metrics.prometheus.CustomBuckets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Bounds of histogram buckets as the option {@code custom-histogram-buckets} gives them: a JSON object that has a list
 * of numbers for each family of buckets, e.g. {@code {"request_latency": [0.5, 1, 5]}}.
 *
 * @param bounds numbers, or what stands in place of them, by family, in the order given
 */
public record HistogramBuckets(Map<String, List<Object>> bounds) {
  /** Keeps the order. */
  public HistogramBuckets {
    Map<String, List<Object>> copy = new LinkedHashMap<>();
    bounds.forEach((family, list) -> copy.put(family, List.copyOf(list)));
    bounds = Collections.unmodifiableMap(copy);
  }

  /**
   * Reads the JSON and checks the bounds.
   *
   * @throws IllegalArgumentException if it is no such object, a family is unknown, or bounds are not finite, positive
   *     and strictly increasing; names the family
   */
  public static HistogramBuckets parse(String json) {
    HistogramBuckets buckets = new HistogramBuckets(new Reader(json).object());
    var _ = CustomBuckets.of(buckets.bounds);
    return buckets;
  }

  /** As much of JSON as such an object needs. */
  private static final class Reader {
    private final String json;
    private int at;

    Reader(String json) {
      this.json = json;
    }

    Map<String, List<Object>> object() {
      Map<String, List<Object>> families = new LinkedHashMap<>();
      expect('{');
      if (!next('}')) {
        do {
          String name = string();
          expect(':');
          if (families.put(name, list()) != null) {
            throw new IllegalArgumentException("'" + name + "' is there twice");
          }
        } while (next(','));
        expect('}');
      }
      skipSpace();
      if (at < json.length()) {
        throw unexpected("the end");
      }
      return families;
    }

    private List<Object> list() {
      List<Object> list = new ArrayList<>();
      expect('[');
      if (!next(']')) {
        do {
          list.add(element());
        } while (next(','));
        expect(']');
      }
      return list;
    }

    private Object element() {
      skipSpace();
      int start = at;
      while (at < json.length() && ",]} \t\r\n".indexOf(json.charAt(at)) < 0) {
        at++;
      }
      String word = json.substring(start, at);
      if (word.equals("true") || word.equals("false")) {
        return Boolean.valueOf(word);
      }
      try {
        return Double.valueOf(word);
      } catch (NumberFormatException e) {
        at = start;
        throw unexpected("a number");
      }
    }

    private String string() {
      expect('"');
      int end = json.indexOf('"', at);
      if (end < 0) {
        throw unexpected("a name in quotes");
      }
      String text = json.substring(at, end);
      at = end + 1;
      return text;
    }

    private void expect(char c) {
      if (!next(c)) {
        throw unexpected("'" + c + "'");
      }
    }

    private boolean next(char c) {
      skipSpace();
      boolean found = at < json.length() && json.charAt(at) == c;
      if (found) {
        at++;
      }
      return found;
    }

    private void skipSpace() {
      while (at < json.length() && Character.isWhitespace(json.charAt(at))) {
        at++;
      }
    }

    private IllegalArgumentException unexpected(String wanted) {
      return new IllegalArgumentException(
          "expected JSON such as {\"request_latency\": [0.5, 1, 5]}, but at character " + (at + 1) + " there is no "
              + wanted + ": '" + json + "'");
    }
  }
}
