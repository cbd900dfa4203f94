package dev.tacho.engine.format;

import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What stands before the tensor data of a GGUF file, read and checked as a whole.
 *
 * <pre>
 * u32 magic "GGUF" | u32 version | u64 tensor count | u64 metadata count
 * metadata:  string key | u32 value type | value
 * tensors:   string name | u32 dimensions | u64 extent each | u32 type | u64 offset from the data's start
 * padding to general.alignment, then the data
 * string:    u64 length | bytes
 * </pre>
 *
 * @param version 2 or 3, which differ only in that 3 may be big-endian
 * @param metadata where each value lies, in file order
 * @param tensors the tensors by name, in file order
 */
record GgufHeader(int version, Map<String, GgufValue> metadata, Map<String, GgufTensor> tensors) {
  private static final int MAGIC = 0x46554747;
  private static final int MIN_VERSION = 2;
  private static final int MAX_VERSION = 3;
  private static final int MAX_KEY_BYTES = 65_535;
  private static final int MAX_NAME_BYTES = 64;
  private static final int MAX_DIMENSIONS = 4;
  private static final int MAX_ARRAY_DEPTH = 4;
  private static final int MIN_METADATA_BYTES = 8 + 1 + 4 + 1;
  private static final int MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8;
  private static final String ALIGNMENT_KEY = "general.alignment";
  private static final long DEFAULT_ALIGNMENT = 32;

  /** A tensor's line in the header, before it is known where the data begins. */
  private record Entry(
      String name, GgmlType type, int typeId, List<Long> shape, long bytes, long offset, long at) {}

  /**
   * Reads the header.
   *
   * @param file name of the file for messages
   * @param bytes the whole file
   * @throws ModelFormatException if anything is not as the format says, or lies outside the file
   * @throws UnsupportedException if the version or a tensor's type is one that this code does not know
   */
  static GgufHeader read(String file, MemorySegment bytes) {
    GgufCursor cursor = new GgufCursor(file, bytes, 0);
    int version = readVersion(file, cursor);
    long tensorCountAt = cursor.position();
    long tensorCount = cursor.count("tensor count", MIN_TENSOR_BYTES);
    long metadataCount = cursor.count("metadata count", MIN_METADATA_BYTES);
    if (tensorCount > Integer.MAX_VALUE || metadataCount > Integer.MAX_VALUE) {
      throw cursor.fault(
          tensorCountAt,
          "tensor and metadata counts",
          "at most " + Integer.MAX_VALUE,
          tensorCount + " and " + metadataCount);
    }
    Map<String, GgufValue> metadata = new LinkedHashMap<>();
    for (long i = 0; i < metadataCount; i++) {
      readMetadata(cursor, i, metadata);
    }
    List<Entry> entries = new ArrayList<>();
    for (long i = 0; i < tensorCount; i++) {
      entries.add(readTensor(file, cursor, i));
    }
    long alignment = alignment(file, bytes, metadata);
    long dataStart = Math.ceilDiv(cursor.position(), alignment) * alignment;
    return new GgufHeader(
        version, metadata, place(cursor, entries, alignment, dataStart, bytes.byteSize()));
  }

  private static int readVersion(String file, GgufCursor cursor) {
    int magic = cursor.int32("magic");
    if (magic != MAGIC) {
      byte[] bytes = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN).putInt(magic).array();
      String found = "the bytes " + HexFormat.ofDelimiter(" ").formatHex(bytes);
      throw cursor.fault(
          0,
          "magic",
          "the bytes 47 47 55 46 (\"GGUF\")",
          magic == Integer.reverseBytes(MAGIC)
              ? found + ", the same in the wrong byte order"
              : found);
    }
    long at = cursor.position();
    int version = cursor.int32("version");
    int swapped = Integer.reverseBytes(version);
    if ((version & 0xffff) == 0 && swapped > 0) {
      throw cursor.fault(
          at, "version", "a little-endian file", "a big-endian one of version " + swapped);
    }
    if (version == 0) {
      throw cursor.fault(at, "version", MIN_VERSION + " or " + MAX_VERSION, "0");
    }
    if (version < MIN_VERSION || version > MAX_VERSION) {
      throw new UnsupportedException(
          "GGUF version " + Integer.toUnsignedString(version) + " of " + file,
          "versions " + MIN_VERSION + " and " + MAX_VERSION + " can be read");
    }
    return version;
  }

  private static void readMetadata(GgufCursor cursor, long index, Map<String, GgufValue> into) {
    long at = cursor.position();
    String key = cursor.string("key of metadata entry " + index, 1, MAX_KEY_BYTES);
    GgufValueType type = readValueType(cursor, key);
    boolean array = type == GgufValueType.ARRAY;
    GgufValueType elementType = array ? readValueType(cursor, key) : type;
    long count = array ? cursor.count(key + " array length", elementType.minBytes()) : 1;
    long offset = cursor.position();
    skipElements(cursor, key, elementType, count, array ? 1 : 0);
    GgufValue value = new GgufValue(type, elementType, offset, cursor.position() - offset, count);
    if (into.putIfAbsent(key, value) != null) {
      throw cursor.fault(at, "metadata key", "each key once", key + " again");
    }
  }

  private static GgufValueType readValueType(GgufCursor cursor, String key) {
    long at = cursor.position();
    int id = cursor.int32(key + " value type");
    GgufValueType type = GgufValueType.ofId(id);
    if (type == null) {
      throw cursor.fault(
          at,
          key + " value type",
          "0 to " + (GgufValueType.values().length - 1),
          Integer.toUnsignedString(id));
    }
    return type;
  }

  private static void skipElements(
      GgufCursor cursor, String key, GgufValueType type, long count, int depth) {
    if (type.hasFixedSize()) {
      cursor.skip(count * type.minBytes(), key);
      return;
    }
    if (type == GgufValueType.STRING) {
      cursor.skipStrings(count, key);
      return;
    }
    if (depth == MAX_ARRAY_DEPTH) {
      throw cursor.fault(
          cursor.position(),
          key,
          "arrays nested at most " + MAX_ARRAY_DEPTH + " deep",
          "one more level");
    }
    for (long i = 0; i < count; i++) {
      GgufValueType elementType = readValueType(cursor, key);
      long length = cursor.count(key + " array length", elementType.minBytes());
      skipElements(cursor, key, elementType, length, depth + 1);
    }
  }

  private static Entry readTensor(String file, GgufCursor cursor, long index) {
    long at = cursor.position();
    String name = cursor.string("name of tensor " + index, 1, MAX_NAME_BYTES);
    long dimensionsAt = cursor.position();
    int dimensions = cursor.int32(name + " dimensions");
    if (dimensions < 1 || dimensions > MAX_DIMENSIONS) {
      throw cursor.fault(
          dimensionsAt,
          name + " dimensions",
          "1 to " + MAX_DIMENSIONS,
          Integer.toUnsignedString(dimensions));
    }
    List<Long> shape = new ArrayList<>(dimensions);
    long elements = 1;
    for (int i = 0; i < dimensions; i++) {
      long extentAt = cursor.position();
      long extent = cursor.int64(name + " extent " + i);
      if (extent <= 0) {
        throw cursor.fault(
            extentAt,
            name + " extent " + i,
            "1 to " + Long.MAX_VALUE,
            Long.toUnsignedString(extent));
      }
      if (Math.multiplyHigh(elements, extent) != 0 || elements * extent < 0) {
        throw cursor.fault(
            extentAt,
            name + " extents",
            "a product of at most " + Long.MAX_VALUE,
            elements + " times " + extent);
      }
      elements *= extent;
      shape.add(extent);
    }
    int typeId = cursor.int32(name + " type");
    GgmlType type = GgmlType.ofId(typeId);
    if (type == null) {
      throw new UnsupportedException(
          "tensor type " + GgmlType.describe(typeId) + " of " + name + " in " + file,
          "the type is not known");
    }
    long bytes = bytesOf(cursor, at, name, type, shape, elements);
    long offset = cursor.int64(name + " offset");
    return new Entry(name, type, typeId, shape, bytes, offset, at);
  }

  private static long bytesOf(
      GgufCursor cursor, long at, String name, GgmlType type, List<Long> shape, long elements) {
    if (shape.getFirst() % type.blockElements() != 0) {
      throw cursor.fault(
          at,
          name + " extent 0",
          "a multiple of " + type.blockElements() + ", the block of " + type,
          String.valueOf(shape.getFirst()));
    }
    long blocks = elements / type.blockElements();
    if (blocks > Long.MAX_VALUE / type.blockBytes()) {
      throw cursor.fault(
          at,
          name + " size",
          "at most " + Long.MAX_VALUE + " bytes",
          blocks + " blocks of " + type.blockBytes());
    }
    return blocks * type.blockBytes();
  }

  private static long alignment(String file, MemorySegment bytes, Map<String, GgufValue> metadata) {
    GgufValue value = metadata.get(ALIGNMENT_KEY);
    if (value == null) {
      return DEFAULT_ALIGNMENT;
    }
    long alignment = GgufDecoder.integer(file, bytes, ALIGNMENT_KEY, value);
    if (alignment <= 0 || Long.bitCount(alignment) != 1 || alignment > Integer.MAX_VALUE) {
      throw new ModelFormatException(
          file,
          value.offset(),
          ALIGNMENT_KEY,
          "a power of two below 2^31",
          String.valueOf(alignment));
    }
    return alignment;
  }

  /** Turns offsets into places in the file, which must be aligned, inside the file and nobody else's. */
  private static Map<String, GgufTensor> place(
      GgufCursor cursor, List<Entry> entries, long alignment, long dataStart, long fileBytes) {
    Map<String, GgufTensor> tensors = new LinkedHashMap<>();
    for (Entry entry : entries) {
      if (entry.offset % alignment != 0) {
        throw cursor.fault(
            entry.at,
            entry.name + " offset",
            "a multiple of the alignment " + alignment,
            Long.toUnsignedString(entry.offset));
      }
      long available = Math.max(0, fileBytes - dataStart);
      if (entry.offset < 0 || entry.offset > available || entry.bytes > available - entry.offset) {
        throw cursor.fault(
            entry.at,
            entry.name + " data",
            entry.bytes
                + " bytes of "
                + entry.type
                + " at offset "
                + Long.toUnsignedString(entry.offset),
            available + " bytes of data in the file");
      }
      GgufTensor tensor =
          new GgufTensor(
              entry.name, entry.typeId, entry.shape, dataStart + entry.offset, entry.bytes);
      if (tensors.putIfAbsent(entry.name, tensor) != null) {
        throw cursor.fault(entry.at, "tensor name", "each name once", entry.name + " again");
      }
    }
    checkOverlap(cursor, tensors);
    return tensors;
  }

  private static void checkOverlap(GgufCursor cursor, Map<String, GgufTensor> tensors) {
    List<GgufTensor> byOffset = new ArrayList<>(tensors.values());
    byOffset.sort(Comparator.comparingLong(GgufTensor::offset));
    for (int i = 1; i < byOffset.size(); i++) {
      GgufTensor previous = byOffset.get(i - 1);
      GgufTensor next = byOffset.get(i);
      if (next.offset() < previous.offset() + previous.bytes()) {
        throw cursor.fault(
            next.offset(),
            next.name() + " data",
            "a place after "
                + previous.name()
                + ", which ends at "
                + (previous.offset() + previous.bytes()),
            "an overlap");
      }
    }
  }
}
