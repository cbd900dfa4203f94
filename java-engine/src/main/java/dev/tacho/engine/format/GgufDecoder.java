package dev.tacho.engine.format;

import dev.tacho.engine.ModelFormatException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Turns metadata values, as they lie in the file, into Java ones, or says which key has another type than asked. */
final class GgufDecoder {
  private static final ValueLayout.OfInt INT32 =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfFloat FLOAT32 =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private GgufDecoder() {}

  static String string(String file, MemorySegment bytes, String key, GgufValue value) {
    requireScalar(file, key, value, value.type() == GgufValueType.STRING, "a string");
    return cursor(file, bytes, value).string(key);
  }

  static long integer(String file, MemorySegment bytes, String key, GgufValue value) {
    requireScalar(file, key, value, isInteger(value.type()), "an integer");
    return readInteger(cursor(file, bytes, value), key, value.type());
  }

  static double number(String file, MemorySegment bytes, String key, GgufValue value) {
    requireScalar(file, key, value, isInteger(value.type()) || isFloat(value.type()), "a number");
    return readNumber(cursor(file, bytes, value), key, value.type());
  }

  static boolean bool(String file, MemorySegment bytes, String key, GgufValue value) {
    requireScalar(file, key, value, value.type() == GgufValueType.BOOL, "a bool");
    return readBool(cursor(file, bytes, value), key);
  }

  static GgufStrings strings(String file, MemorySegment bytes, String key, GgufValue value) {
    int count =
        requireArray(
            file, key, value, value.elementType() == GgufValueType.STRING, "an array of strings");
    if (value.bytes() > Integer.MAX_VALUE - 8) {
      throw new ModelFormatException(
          file, value.offset(), key + " array", "fewer than 2^31 bytes", String.valueOf(value.bytes()));
    }
    return cursor(file, bytes, value).strings(count, (int) value.bytes(), key);
  }

  static float[] floats(String file, MemorySegment bytes, String key, GgufValue value) {
    boolean numeric = isInteger(value.elementType()) || isFloat(value.elementType());
    int count = requireArray(file, key, value, numeric, "an array of numbers");
    if (value.elementType() == GgufValueType.FLOAT32) {
      return bytes.asSlice(value.offset(), value.bytes()).toArray(FLOAT32);
    }
    GgufCursor cursor = cursor(file, bytes, value);
    float[] floats = new float[count];
    for (int i = 0; i < count; i++) {
      floats[i] = (float) readNumber(cursor, key, value.elementType());
    }
    return floats;
  }

  static int[] integers(String file, MemorySegment bytes, String key, GgufValue value) {
    boolean whole = isInteger(value.elementType()) || value.elementType() == GgufValueType.BOOL;
    int count = requireArray(file, key, value, whole, "an array of integers");
    if (value.elementType() == GgufValueType.INT32) {
      return bytes.asSlice(value.offset(), value.bytes()).toArray(INT32);
    }
    GgufCursor cursor = cursor(file, bytes, value);
    int[] integers = new int[count];
    for (int i = 0; i < count; i++) {
      long at = cursor.position();
      long element = readInteger(cursor, key, value.elementType());
      if (element != (int) element) {
        throw cursor.fault(
            at, key + " element " + i, "an integer of 32 bits", String.valueOf(element));
      }
      integers[i] = (int) element;
    }
    return integers;
  }

  private static GgufCursor cursor(String file, MemorySegment bytes, GgufValue value) {
    return new GgufCursor(file, bytes, value.offset());
  }

  private static void requireScalar(
      String file, String key, GgufValue value, boolean fits, String expected) {
    if (value.isArray() || !fits) {
      throw new ModelFormatException(file, value.offset(), key, expected, value.describe());
    }
  }

  private static int requireArray(
      String file, String key, GgufValue value, boolean fits, String expected) {
    if (!value.isArray() || !fits) {
      throw new ModelFormatException(file, value.offset(), key, expected, value.describe());
    }
    if (value.count() > Integer.MAX_VALUE - 8) {
      throw new ModelFormatException(
          file,
          value.offset(),
          key + " array length",
          "fewer than 2^31 elements",
          String.valueOf(value.count()));
    }
    return (int) value.count();
  }

  private static boolean isInteger(GgufValueType type) {
    return switch (type) {
      case UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64 -> true;
      case FLOAT32, FLOAT64, BOOL, STRING, ARRAY -> false;
    };
  }

  private static boolean isFloat(GgufValueType type) {
    return type == GgufValueType.FLOAT32 || type == GgufValueType.FLOAT64;
  }

  private static long readInteger(GgufCursor cursor, String key, GgufValueType type) {
    long at = cursor.position();
    return switch (type) {
      case UINT8 -> Byte.toUnsignedLong(cursor.int8(key));
      case INT8 -> cursor.int8(key);
      case UINT16 -> Short.toUnsignedLong(cursor.int16(key));
      case INT16 -> cursor.int16(key);
      case UINT32 -> Integer.toUnsignedLong(cursor.int32(key));
      case INT32 -> cursor.int32(key);
      case INT64 -> cursor.int64(key);
      case BOOL -> readBool(cursor, key) ? 1 : 0;
      case UINT64 -> {
        long value = cursor.int64(key);
        if (value < 0) {
          throw cursor.fault(at, key, "at most " + Long.MAX_VALUE, Long.toUnsignedString(value));
        }
        yield value;
      }
      case FLOAT32, FLOAT64, STRING, ARRAY -> throw new IllegalArgumentException(type.label());
    };
  }

  private static double readNumber(GgufCursor cursor, String key, GgufValueType type) {
    return switch (type) {
      case FLOAT32 -> Float.intBitsToFloat(cursor.int32(key));
      case FLOAT64 -> Double.longBitsToDouble(cursor.int64(key));
      default -> readInteger(cursor, key, type);
    };
  }

  private static boolean readBool(GgufCursor cursor, String key) {
    long at = cursor.position();
    byte value = cursor.int8(key);
    if (value != 0 && value != 1) {
      throw cursor.fault(at, key, "a bool, 0 or 1", String.valueOf(Byte.toUnsignedInt(value)));
    }
    return value == 1;
  }
}
