package dev.tacho.engine.format;

import java.nio.charset.StandardCharsets;
import java.util.AbstractList;
import java.util.Objects;
import java.util.RandomAccess;

/**
 * An array of strings, copied out of a file as it lies there: a string is made of one only when it is asked for, so
 * that what needs no more than the bytes of a large vocabulary makes no object for each. Unmodifiable, for any thread.
 */
public final class GgufStrings extends AbstractList<String> implements RandomAccess {
  private final byte[] bytes;
  private final int[] ends;

  /**
   * Takes the arrays over.
   *
   * @param bytes each string as valid UTF-8 after its length, a u64
   * @param ends where each ends
   */
  GgufStrings(byte[] bytes, int[] ends) {
    this.bytes = bytes;
    this.ends = ends;
  }

  @Override
  public int size() {
    return ends.length;
  }

  @Override
  public String get(int index) {
    Objects.checkIndex(index, ends.length);
    return new String(bytes, start(index), end(index) - start(index), StandardCharsets.UTF_8);
  }

  /** All strings as UTF-8: the array itself, which nobody may write to. Between two of them lies what is neither's. */
  public byte[] bytes() {
    return bytes;
  }

  /** Index of a string's first byte in {@link #bytes()}. */
  public int start(int index) {
    return index == 0 ? Long.BYTES : ends[index - 1] + Long.BYTES;
  }

  /** Index after a string's last byte in {@link #bytes()}. */
  public int end(int index) {
    return ends[index];
  }
}
