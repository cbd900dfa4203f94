package dev.tacho.metrics.prometheus;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Bucket bounds that an operator gives in place of a {@link BucketFamily}'s own. Each given family is replaced wholly,
 * the others keep theirs. Immutable.
 */
public final class CustomBuckets {
  /** No bounds are replaced. */
  public static final CustomBuckets NONE = new CustomBuckets(new EnumMap<>(BucketFamily.class));

  private static final Pattern NUMBER =
      Pattern.compile("[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?|[+-]?(?i:inf|infinity|nan)");

  private final Map<BucketFamily, double[]> bounds;

  private CustomBuckets(Map<BucketFamily, double[]> bounds) {
    this.bounds = bounds;
  }

  /**
   * Reads bounds as a configuration holds them. The first fault is reported; booleans and wrong types are looked for
   * in all families first, then each family is checked in the order of the map.
   *
   * @param given for each family's {@linkplain BucketFamily#option() name} a list of numbers, or of texts of numbers
   * @throws IllegalArgumentException if a family is unknown or its bounds are not finite, positive and strictly
   *     increasing; names the family
   */
  public static CustomBuckets of(Map<String, ?> given) {
    given.forEach((name, value) -> {
      if (value instanceof List<?> list && list.stream().anyMatch(Boolean.class::isInstance)) {
        throw fault(name, "a boolean is no bucket bound");
      }
    });
    Map<String, double[]> numbers = new LinkedHashMap<>();
    given.forEach((name, value) -> numbers.put(name, numbers(name, value)));
    Map<BucketFamily, double[]> bounds = new EnumMap<>(BucketFamily.class);
    numbers.forEach((name, values) -> bounds.put(family(name), checked(name, values)));
    return new CustomBuckets(bounds);
  }

  /**
   * The bounds of a family, ascending, without the infinite one.
   *
   * @param maxModelLen longest context in tokens; matters to the family's own bounds alone
   */
  public double[] bounds(BucketFamily family, int maxModelLen) {
    double[] own = bounds.get(family);
    return own == null ? family.bounds(maxModelLen) : own.clone();
  }

  /** The bounds that replace others, by the families' names in options. */
  Map<String, List<Double>> replaced() {
    Map<String, List<Double>> replaced = new LinkedHashMap<>();
    bounds.forEach((family, values) -> replaced.put(family.option(), Arrays.stream(values).boxed().toList()));
    return replaced;
  }

  private static double[] numbers(String name, @Nullable Object value) {
    if (!(value instanceof List<?> list)) {
      throw fault(name, "must be a list of numbers");
    }
    double[] numbers = new double[list.size()];
    for (int i = 0; i < numbers.length; i++) {
      Object element = list.get(i);
      if (element instanceof Number number) {
        numbers[i] = number.doubleValue();
      } else if (element instanceof String text && NUMBER.matcher(text.strip()).matches()) {
        numbers[i] = parse(text.strip());
      } else {
        throw fault(name, "must be a list of numbers, but element " + i + " is "
            + (element instanceof String text ? '"' + text + '"' : String.valueOf(element)));
      }
    }
    return numbers;
  }

  private static double parse(String text) {
    String lower = text.toLowerCase(Locale.ROOT);
    if (lower.endsWith("nan")) {
      return Double.NaN;
    }
    if (lower.contains("inf")) {
      return lower.startsWith("-") ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
    }
    return Double.parseDouble(lower);
  }

  private static BucketFamily family(String name) {
    for (BucketFamily family : BucketFamily.values()) {
      if (family.isReplaceable() && family.option().equals(name)) {
        return family;
      }
    }
    List<String> known = new ArrayList<>();
    for (BucketFamily family : BucketFamily.values()) {
      if (family.isReplaceable()) {
        known.add(family.option());
      }
    }
    throw fault(name, "is no family of buckets; known: "
        + known.stream().sorted().collect(Collectors.joining(", ")));
  }

  private static double[] checked(String name, double[] values) {
    if (values.length == 0) {
      throw fault(name, "must not be an empty list");
    }
    for (double value : values) {
      if (!(value > 0 && value < Double.POSITIVE_INFINITY)) {
        throw fault(name, "each bound must be finite and positive, but one is " + NumberFormat.format(value));
      }
    }
    for (int i = 1; i < values.length; i++) {
      if (values[i] <= values[i - 1]) {
        throw fault(name, "bounds must be strictly increasing, but " + NumberFormat.format(values[i - 1])
            + " is followed by " + NumberFormat.format(values[i]));
      }
    }
    return values;
  }

  private static IllegalArgumentException fault(String name, String what) {
    return new IllegalArgumentException("customHistogramBuckets, " + name + ": " + what);
  }

  @Override
  public String toString() {
    return bounds.entrySet().stream().map(e -> e.getKey().option() + "=" + Arrays.toString(e.getValue()))
        .collect(Collectors.joining(", ", "{", "}"));
  }
}
