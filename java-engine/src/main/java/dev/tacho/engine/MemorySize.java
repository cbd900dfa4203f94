package dev.tacho.engine;

import java.math.BigDecimal;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An amount of memory, exact to the byte.
 *
 * @param bytes at least 0
 */
public record MemorySize(long bytes) implements Comparable<MemorySize> {
  private static final Pattern SYNTAX = Pattern.compile("([0-9]+(?:\\.[0-9]+)?)\\s*([a-zA-Z]*)");
  private static final String[] BINARY_UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};

  /** vLLM's one-letter units (small: powers of ten, capital: powers of two) and the written-out ones. */
  private static final Map<String, Long> FACTORS =
      Map.ofEntries(
          Map.entry("", 1L),
          Map.entry("B", 1L),
          Map.entry("k", 1_000L),
          Map.entry("K", 1L << 10),
          Map.entry("kB", 1_000L),
          Map.entry("KB", 1_000L),
          Map.entry("KiB", 1L << 10),
          Map.entry("m", 1_000_000L),
          Map.entry("M", 1L << 20),
          Map.entry("MB", 1_000_000L),
          Map.entry("MiB", 1L << 20),
          Map.entry("g", 1_000_000_000L),
          Map.entry("G", 1L << 30),
          Map.entry("GB", 1_000_000_000L),
          Map.entry("GiB", 1L << 30),
          Map.entry("t", 1_000_000_000_000L),
          Map.entry("T", 1L << 40),
          Map.entry("TB", 1_000_000_000_000L),
          Map.entry("TiB", 1L << 40));

  /** Checks the sign. */
  public MemorySize {
    if (bytes < 0) {
      throw new IllegalArgumentException("a memory size of " + bytes + " bytes");
    }
  }

  /** So many times 2^30 bytes. */
  public static MemorySize ofGibibytes(long gibibytes) {
    return new MemorySize(Math.multiplyExact(gibibytes, 1L << 30));
  }

  /**
   * Reads {@code 4GiB}, {@code 512MiB}, {@code 1.5GB}, a number of bytes, or vLLM's short units ({@code 4G} is 2^32
   * bytes, {@code 4g} 4 * 10^9).
   *
   * @throws IllegalArgumentException if it is none of these, or no whole number of bytes
   */
  public static MemorySize parse(String text) {
    return new MemorySize(parseBytes(text));
  }

  private static long parseBytes(String text) {
    Matcher m = SYNTAX.matcher(text.strip());
    Long factor = m.matches() ? FACTORS.get(m.group(2)) : null;
    if (factor == null) {
      throw new IllegalArgumentException(
          "expected a number with a unit such as 4GiB or 512MiB, found '" + text + "'");
    }
    boolean fraction = m.group(1).indexOf('.') >= 0;
    if (fraction && m.group(2).length() == 1 && Character.isUpperCase(m.group(2).charAt(0))) {
      throw new IllegalArgumentException("'" + text + "': K, M, G and T are powers of two and take whole numbers only");
    }
    try {
      return new BigDecimal(m.group(1)).multiply(BigDecimal.valueOf(factor)).longValueExact();
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException("'" + text + "' is no whole number below 2^63", e);
    }
  }

  /** For people: the largest unit that fits, with one digit after the point, e.g. {@code 1.5 GiB}. */
  public String human() {
    int unit = 0;
    double value = bytes;
    while (value >= 1024 && unit < BINARY_UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    return unit == 0 ? bytes + " B" : String.format(Locale.ROOT, "%.1f %s", value, BINARY_UNITS[unit]);
  }

  /** Exact, in the form that {@link #parse} reads. */
  @Override
  public String toString() {
    int unit = 0;
    long value = bytes;
    while (value != 0 && value % 1024 == 0 && unit < BINARY_UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    return value + BINARY_UNITS[unit];
  }

  @Override
  public int compareTo(MemorySize other) {
    return Long.compare(bytes, other.bytes);
  }
}
