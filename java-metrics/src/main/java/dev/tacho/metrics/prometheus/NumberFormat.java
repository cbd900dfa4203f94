package dev.tacho.metrics.prometheus;

import java.nio.charset.StandardCharsets;

/**
 * Numbers as the Python client writes them: the shortest digits that read back as the same double, {@code .0} after
 * whole numbers, an exponent of two digits from a million up and below a ten-thousandth. An instance keeps its scratch
 * and leaves no garbage; one thread.
 */
final class NumberFormat {
  /** The most bytes that a number takes. */
  static final int MAX_BYTES = 32;

  private static final int MIN_POINT = -3;
  private static final int MAX_POINT = 6;
  private static final int MAX_NEGATIVE_POINT = 16;

  private final StringBuilder shortest = new StringBuilder(MAX_BYTES);
  private final byte[] digits = new byte[MAX_BYTES];
  private byte[] target = digits;
  private int at;

  /** The text of a number. */
  static String format(double value) {
    byte[] text = new byte[MAX_BYTES];
    return new String(text, 0, new NumberFormat().write(value, text, 0), StandardCharsets.US_ASCII);
  }

  /**
   * Writes a number.
   *
   * @param value the number
   * @param into has room for {@link #MAX_BYTES} bytes
   * @param offset where it begins
   * @return where it ends
   */
  int write(double value, byte[] into, int offset) {
    target = into;
    at = offset;
    if (Double.isNaN(value)) {
      put("NaN");
    } else if (Double.isInfinite(value)) {
      put(value > 0 ? "+Inf" : "-Inf");
    } else {
      finite(value);
    }
    return at;
  }

  private void finite(double value) {
    if (value < 0 || (value == 0 && 1 / value < 0)) {
      put('-');
    }
    if (value == 0) {
      put("0.0");
      return;
    }
    shortest.setLength(0);
    shortest.append(Math.abs(value));
    int count = 0;
    int point = -1;
    int exponent = 0;
    for (int i = 0; i < shortest.length(); i++) {
      char c = shortest.charAt(i);
      if (c == '.') {
        point = count;
      } else if (c == 'E') {
        exponent = exponent(i + 1);
        break;
      } else {
        digits[count++] = (byte) c;
      }
    }
    int first = 0;
    while (digits[first] == '0') {
      first++;
    }
    while (digits[count - 1] == '0') {
      count--;
    }
    place(first, count, point + exponent - first, value > 0);
  }

  private int exponent(int from) {
    boolean negative = shortest.charAt(from) == '-';
    int value = 0;
    for (int i = negative ? from + 1 : from; i < shortest.length(); i++) {
      value = 10 * value + shortest.charAt(i) - '0';
    }
    return negative ? -value : value;
  }

  /** Writes 0.digits times ten to the power {@code point}. */
  private void place(int first, int end, int point, boolean positive) {
    if (point > (positive ? MAX_POINT : MAX_NEGATIVE_POINT) || point < MIN_POINT) {
      put((char) digits[first]);
      if (end - first > 1) {
        put('.');
        put(first + 1, end);
      }
      scale(point - 1);
    } else if (point <= 0) {
      put("0.");
      zeros(-point);
      put(first, end);
    } else if (point >= end - first) {
      put(first, end);
      zeros(point - (end - first));
      put(".0");
    } else {
      put(first, first + point);
      put('.');
      put(first + point, end);
    }
  }

  private void scale(int power) {
    put('e');
    put(power < 0 ? '-' : '+');
    int magnitude = Math.abs(power);
    if (magnitude >= 100) {
      put((char) ('0' + magnitude / 100));
    }
    put((char) ('0' + magnitude / 10 % 10));
    put((char) ('0' + magnitude % 10));
  }

  private void put(String ascii) {
    for (int i = 0; i < ascii.length(); i++) {
      put(ascii.charAt(i));
    }
  }

  private void put(char ascii) {
    target[at++] = (byte) ascii;
  }

  private void put(int from, int to) {
    for (int i = from; i < to; i++) {
      target[at++] = digits[i];
    }
  }

  private void zeros(int count) {
    for (int i = 0; i < count; i++) {
      target[at++] = '0';
    }
  }
}
