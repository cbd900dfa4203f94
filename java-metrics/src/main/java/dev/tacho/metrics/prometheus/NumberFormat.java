package dev.tacho.metrics.prometheus;

/**
 * Numbers as the Python client writes them: the shortest digits that read back as the same double, {@code .0} after
 * whole numbers, an exponent of two digits from a million up and below a ten-thousandth.
 */
final class NumberFormat {
  private NumberFormat() {}

  static String format(double value) {
    if (Double.isNaN(value)) {
      return "NaN";
    }
    if (Double.isInfinite(value)) {
      return value > 0 ? "+Inf" : "-Inf";
    }
    if (value == Math.rint(value) && Math.abs(value) < 1e6) {
      String whole = Long.toString((long) value) + ".0";
      return value == 0 && 1 / value < 0 ? "-" + whole : whole;
    }
    String sign = value < 0 ? "-" : "";
    String text = Double.toString(Math.abs(value));
    int e = text.indexOf('E');
    int exponent = e < 0 ? 0 : Integer.parseInt(text, e + 1, text.length(), 10);
    String mantissa = e < 0 ? text : text.substring(0, e);
    int dot = mantissa.indexOf('.');
    String digits = mantissa.substring(0, dot) + mantissa.substring(dot + 1);
    int pointAt = dot + exponent;
    int leading = 0;
    while (leading < digits.length() - 1 && digits.charAt(leading) == '0') {
      leading++;
    }
    digits = digits.substring(leading);
    pointAt -= leading;
    int end = digits.length();
    while (end > 1 && digits.charAt(end - 1) == '0') {
      end--;
    }
    digits = digits.substring(0, end);
    return sign + place(digits, pointAt, value > 0);
  }

  /** Writes 0.digits times ten to the power {@code pointAt}. */
  private static String place(String digits, int pointAt, boolean positive) {
    boolean large = positive ? pointAt > 6 : pointAt > 16;
    if (large || pointAt < -3) {
      int power = pointAt - 1;
      String fraction = digits.length() > 1 ? "." + digits.substring(1) : "";
      String magnitude = Math.abs(power) < 10 ? "0" + Math.abs(power) : Integer.toString(Math.abs(power));
      return digits.charAt(0) + fraction + "e" + (power < 0 ? "-" : "+") + magnitude;
    }
    if (pointAt <= 0) {
      return "0." + "0".repeat(-pointAt) + digits;
    }
    if (pointAt >= digits.length()) {
      return digits + "0".repeat(pointAt - digits.length()) + ".0";
    }
    return digits.substring(0, pointAt) + "." + digits.substring(pointAt);
  }
}
