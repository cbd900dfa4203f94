package dev.tacho.metrics.prometheus;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A growing run of bytes that holds an exposition while it is written. One thread. */
final class TextBuffer {
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

  /** A value and the end of its line. */
  void value(double value) {
    if (value >= 0 && value < 1e6 && value == (long) value && 1 / value > 0) {
      count((long) value);
    } else {
      put(NumberFormat.format(value)).put('\n');
    }
  }

  /** A count and the end of its line. */
  void value(long value) {
    if (value >= 0 && value < 1_000_000) {
      count(value);
    } else {
      put(NumberFormat.format((double) value)).put('\n');
    }
  }

  private void count(long value) {
    room(12);
    int digits = 1;
    for (long rest = value / 10; rest > 0; rest /= 10) {
      digits++;
    }
    long rest = value;
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
