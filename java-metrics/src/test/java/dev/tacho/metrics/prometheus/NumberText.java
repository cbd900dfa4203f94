package dev.tacho.metrics.prometheus;

/** Shows tests of other packages how the exposition writes a number. */
public final class NumberText {
  private NumberText() {}

  /** A number as the exposition writes it. */
  public static String of(double value) {
    return NumberFormat.format(value);
  }
}
