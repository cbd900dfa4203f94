package dev.tacho.engine.format;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The types of metadata values; the ordinal is the type's number in the file. */
enum GgufValueType {
  UINT8(1),
  INT8(1),
  UINT16(2),
  INT16(2),
  UINT32(4),
  INT32(4),
  FLOAT32(4),
  BOOL(1),
  /** A u64 length, then that many bytes of UTF-8. */
  STRING(8),
  /** A u32 element type, a u64 count, then the elements. */
  ARRAY(12),
  UINT64(8),
  INT64(8),
  FLOAT64(8);

  private static final GgufValueType[] BY_ID = values();

  private final int minBytes;

  GgufValueType(int minBytes) {
    this.minBytes = minBytes;
  }

  /** The type with this number, null if there is none. */
  static @Nullable GgufValueType ofId(int id) {
    return id >= 0 && id < BY_ID.length ? BY_ID[id] : null;
  }

  /** Bytes of a value; of the empty one where the length varies. */
  int minBytes() {
    return minBytes;
  }

  boolean hasFixedSize() {
    return this != STRING && this != ARRAY;
  }

  /** The name in messages and in the format's specification. */
  String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
