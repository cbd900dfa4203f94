package dev.tacho.engine.format;

import dev.tacho.engine.ModelFormatException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/**
 * A place in the bytes of a file that only moves over what is there: each read says what it is for, and a read past the
 * end is an error that names the field, its offset and what is left. Little-endian. Of one thread; does not own the
 * bytes.
 */
final class GgufCursor {
  private static final ValueLayout.OfShort INT16 =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT32 =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong INT64 =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final char REPLACEMENT = '\uFFFD';
  private static final int MAX_STRING_BYTES = Integer.MAX_VALUE - 8;

  private final String file;
  private final MemorySegment bytes;
  private long position;

  GgufCursor(String file, MemorySegment bytes, long position) {
    this.file = file;
    this.bytes = bytes;
    this.position = position;
  }

  long position() {
    return position;
  }

  long remaining() {
    return bytes.byteSize() - position;
  }

  byte int8(String field) {
    return bytes.get(ValueLayout.JAVA_BYTE, take(1, field));
  }

  short int16(String field) {
    return bytes.get(INT16, take(Short.BYTES, field));
  }

  int int32(String field) {
    return bytes.get(INT32, take(Integer.BYTES, field));
  }

  long int64(String field) {
    return bytes.get(INT64, take(Long.BYTES, field));
  }

  /**
   * Reads a u64 that counts things which follow, each of at least {@code minBytesEach} bytes; more than the rest of the
   * file can hold is an error, so nothing may be sized by a number that the file does not pay for.
   */
  long count(String field, int minBytesEach) {
    long at = position;
    long value = int64(field);
    long limit = remaining() / minBytesEach;
    if (Long.compareUnsigned(value, limit) > 0) {
      throw fault(
          at,
          field,
          "at most "
              + limit
              + " ("
              + remaining()
              + " bytes are left, "
              + minBytesEach
              + " or more for each)",
          Long.toUnsignedString(value));
    }
    return value;
  }

  /** Reads a length and that many bytes as UTF-8. */
  String string(String field, long minBytes, long maxBytes) {
    long at = position;
    long length = stringLength(field);
    if (length < minBytes || length > maxBytes) {
      throw fault(at, field + " length", minBytes + " to " + maxBytes, String.valueOf(length));
    }
    long start = take(length, field);
    byte[] encoded = bytes.asSlice(start, length).toArray(ValueLayout.JAVA_BYTE);
    String text = new String(encoded, StandardCharsets.UTF_8);
    // Stands for whatever is malformed, or for itself.
    if (text.indexOf(REPLACEMENT) >= 0) {
      requireUtf8(encoded, start, field);
    }
    return text;
  }

  private void requireUtf8(byte[] encoded, long start, String field) {
    ByteBuffer text = ByteBuffer.wrap(encoded);
    try {
      StandardCharsets.UTF_8
          .newDecoder()
          .onMalformedInput(CodingErrorAction.REPORT)
          .onUnmappableCharacter(CodingErrorAction.REPORT)
          .decode(text);
    } catch (CharacterCodingException e) {
      ModelFormatException fault =
          fault(start, field, "UTF-8", "a malformed sequence at byte " + text.position() + " of the string");
      fault.initCause(e);
      throw fault;
    }
  }

  /** Reads a length and that many bytes as UTF-8, of any length. */
  String string(String field) {
    return string(field, 0, MAX_STRING_BYTES);
  }

  /** Passes over a length and that many bytes. */
  void skipString(String field) {
    skip(stringLength(field), field);
  }

  /** Reads a length that the rest of the file can hold. Called for each string, so a message is made only on fault. */
  private long stringLength(String field) {
    long at = position;
    long length = int64(field);
    if (length < 0 || length > remaining()) {
      throw fault(
          at,
          field + " length",
          "at most the " + remaining() + " bytes that are left",
          Long.toUnsignedString(length));
    }
    return length;
  }

  void skip(long length, String field) {
    take(length, field);
  }

  ModelFormatException fault(long at, String field, String expected, String found) {
    return new ModelFormatException(file, at, field, expected, found);
  }

  private long take(long length, String field) {
    long at = position;
    if (length > remaining()) {
      throw fault(at, field, length + " bytes", "the end of the file after " + remaining());
    }
    position = at + length;
    return at;
  }
}
