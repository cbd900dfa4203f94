package dev.tacho.metrics.prometheus;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A growing run of bytes that holds an exposition while it is written, kept for the next one. One thread. */
final class TextBuffer {
  private static final int SMALL = 1_000_000;

  private final NumberFormat numbers = new NumberFormat();
  private byte[] bytes = new byte[1 << 16];
  private int size;

  void clear() {
    size = 0;
  }

  TextBuffer put(byte[] text) {
    room(text.length);
    System.arraycopy(text, 0, bytes, size, text.length);
    size += text.length;
    return this;
  }

  TextBuffer put(String text) {
    return put(text.getBytes(StandardCharsets.UTF_8));
  }

  TextBuffer put(char ascii) {
    room(1);
    bytes[size++] = (byte) ascii;
    return this;
  }

  /** A number alone. */
  TextBuffer put(double value) {
    room(NumberFormat.MAX_BYTES);
    size = numbers.write(value, bytes, size);
    return this;
  }

  /** What names a sample, its value and the end of the line. */
  void line(byte[] prefix, double value) {
    put(prefix);
    if (value >= 0 && value < SMALL && value == (long) value && 1 / value > 0) {
      count((int) value);
    } else {
      put(value).put('\n');
    }
  }

  /** What names a sample, its count and the end of the line. */
  void line(byte[] prefix, long value) {
    put(prefix);
    if (value >= 0 && value < SMALL) {
      count((int) value);
    } else {
      put((double) value).put('\n');
    }
  }

  /** A number below a million, written from its end. */
  private void count(int value) {
    room(9);
    int digits = value < 10 ? 1 : value < 100 ? 2 : value < 1000 ? 3 : value < 10_000 ? 4 : value < 100_000 ? 5 : 6;
    int rest = value;
    for (int i = size + digits - 1; i >= size; i--) {
      bytes[i] = (byte) ('0' + rest % 10);
      rest /= 10;
    }
    size += digits;
    bytes[size++] = '.';
    bytes[size++] = '0';
    bytes[size++] = '\n';
  }

  byte[] toByteArray() {
    return Arrays.copyOf(bytes, size);
  }

  void writeTo(OutputStream out) throws IOException {
    out.write(bytes, 0, size);
  }

  @Override
  public String toString() {
    return new String(bytes, 0, size, StandardCharsets.UTF_8);
  }

  private void room(int more) {
    if (size + more > bytes.length) {
      bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, size + more));
    }
  }
}
