package dev.tacho.engine.format;

import dev.tacho.engine.ModelFormatException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

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
  private static final int MAX_WINDOW_BYTES = 1 << 30;

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

  /**
   * Reads lengths and that many bytes as UTF-8 each, without making a string of any.
   *
   * @param count how many
   * @param lengthBytes of all of them together with their lengths
   */
  GgufStrings strings(int count, int lengthBytes, String field) {
    long start = take(lengthBytes, field);
    byte[] all = bytes.asSlice(start, lengthBytes).toArray(ValueLayout.JAVA_BYTE);
    int[] ends = new int[count];
    int at = 0;
    for (int i = 0; i < count; i++) {
      int from = at + Long.BYTES;
      long length = from <= lengthBytes ? length(all, at) : -1;
      if (length < 0 || length > lengthBytes - from) {
        throw fault(start + at, field + " length", "as when the file was opened", "another one");
      }
      at = from + (int) length;
      ends[i] = at;
      if (!isPlainUtf8(all, from, at)) {
        requireUtf8(Arrays.copyOfRange(all, from, at), start + from, field);
      }
    }
    return new GgufStrings(all, ends);
  }

  private static long length(byte[] all, int at) {
    long length = 0;
    for (int i = Long.BYTES - 1; i >= 0; i--) {
      length = (length << Byte.SIZE) | (all[at + i] & 0xff);
    }
    return length;
  }

  /** False also for some rare sequences that are well-formed: they need a closer look. */
  private static boolean isPlainUtf8(byte[] text, int from, int to) {
    int at = from;
    while (at < to) {
      int more = moreBytes(text[at]);
      if (more < 0 || more >= to - at) {
        return false;
      }
      at++;
      for (; more > 0; more--, at++) {
        if ((text[at] & 0xc0) != 0x80) {
          return false;
        }
      }
    }
    return true;
  }

  /** The bytes that follow the first one of a character; -1 where they are not free, or there are three. */
  private static int moreBytes(byte first) {
    int value = first & 0xff;
    if (value < 0x80) {
      return 0;
    }
    if (value >= 0xc2 && value < 0xe0) {
      return 1;
    }
    return value > 0xe0 && value < 0xf0 && value != 0xed ? 2 : -1;
  }

  /** Passes over so many strings, each a length and that many bytes. */
  void skipStrings(long count, String field) {
    // A vocabulary is passed over at each start, by code that is hardly compiled yet: a buffer is read in far fewer
    // steps then than a segment.
    ByteBuffer window =
        bytes
            .asSlice(position, Math.min(remaining(), MAX_WINDOW_BYTES))
            .asByteBuffer()
            .order(ByteOrder.LITTLE_ENDIAN);
    int limit = window.limit() - Long.BYTES;
    int at = 0;
    long left = count;
    for (; left > 0 && at <= limit; left--) {
      long length = window.getLong(at);
      if (length < 0 || length > limit - at) {
        break;
      }
      at += Long.BYTES + (int) length;
    }
    position += at;
    // What does not fit there: the rest of a huge file, or a length that is wrong.
    for (; left > 0; left--) {
      skip(stringLength(field), field);
    }
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
