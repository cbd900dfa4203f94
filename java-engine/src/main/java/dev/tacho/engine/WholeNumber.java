package dev.tacho.engine;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Whole numbers on the command line, in vLLM's syntax: plain digits, or a number and one letter. Small letters are
 * powers of ten and take a fraction ({@code 2.5k} is 2,500); capital ones are powers of two and take none ({@code 1K}
 * is 1,024).
 */
final class WholeNumber {
  private static final Pattern PLAIN = Pattern.compile("[+-]?[0-9]+(?:_[0-9]+)*");
  private static final Pattern WITH_LETTER = Pattern.compile("([0-9]+)(\\.[0-9]+)?([kKmMgGtT])");
  private static final String LETTERS = "kmgt";

  private WholeNumber() {}

  /**
   * Reads a number. What a small letter leaves behind the point is cut off.
   *
   * @throws IllegalArgumentException if the text is no such number, or one outside 64 bits
   */
  static long parse(String text) {
    String value = text.strip();
    if (PLAIN.matcher(value).matches()) {
      try {
        return Long.parseLong(value.replace("_", ""));
      } catch (NumberFormatException e) {
        throw tooLarge(text, e);
      }
    }
    Matcher m = WITH_LETTER.matcher(value);
    if (!m.matches()) {
      throw new IllegalArgumentException("expected a whole number such as 17, 32k or 1K, found '" + text + "'");
    }
    char letter = m.group(3).charAt(0);
    int power = LETTERS.indexOf(Character.toLowerCase(letter)) + 1;
    if (Character.isUpperCase(letter)) {
      if (m.group(2) != null) {
        throw new IllegalArgumentException(
            "'" + text + "': K, M, G and T are powers of two and take whole numbers only");
      }
      try {
        return Math.multiplyExact(Long.parseLong(m.group(1)), 1L << (10 * power));
      } catch (ArithmeticException | NumberFormatException e) {
        throw tooLarge(text, e);
      }
    }
    String fraction = m.group(2) == null ? "" : m.group(2);
    // In double, as the reference computes it: 12.3456k is 12,345.
    double number = Double.parseDouble(m.group(1) + fraction) * Math.pow(1000, power);
    if (number >= 0x1p63) {
      throw tooLarge(text, null);
    }
    return (long) number;
  }

  private static IllegalArgumentException tooLarge(String text, @Nullable Throwable cause) {
    return new IllegalArgumentException("'" + text + "' is not below 2^63", cause);
  }
}
