package dev.tacho.metrics.logger;

import java.math.BigDecimal;
import java.math.RoundingMode;

/** Numbers in log lines, rounded as C's printf rounds them: half to even on the exact binary value. */
final class CText {
  private CText() {}

  /** A number with a fixed count of digits after the point; {@code nan} and {@code inf} in words. */
  static String fixed(double value, int digits) {
    if (Double.isNaN(value)) {
      return "nan";
    }
    if (Double.isInfinite(value)) {
      return value > 0 ? "inf" : "-inf";
    }
    return new BigDecimal(value).setScale(digits, RoundingMode.HALF_EVEN).toPlainString();
  }

  /** A whole number without a point, any other with as few digits as identify it, and at least one. */
  static String shortest(Number value) {
    if (!(value instanceof Double number)) {
      return value.toString();
    }
    if (!Double.isFinite(number)) {
      return fixed(number, 0);
    }
    String text = new BigDecimal(number.toString()).toPlainString();
    return text.contains(".") ? text : text + ".0";
  }
}
