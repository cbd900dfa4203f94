package dev.tacho.engine.format;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Makes GGUF files for tests, right ones and, through the raw methods, wrong ones. Tensors are laid out one after
 * another on the alignment unless an offset is given.
 */
public final class GgufWriter {
  private final ByteArrayOutputStream metadata = new ByteArrayOutputStream();
  private final ByteArrayOutputStream tensors = new ByteArrayOutputStream();
  private final ByteArrayOutputStream data = new ByteArrayOutputStream();
  private int version = 3;
  private int alignment = 32;
  private long metadataCount;
  private long tensorCount;

  /** Sets the version. */
  public GgufWriter version(int number) {
    version = number;
    return this;
  }

  /** Sets and writes general.alignment. */
  public GgufWriter alignment(int bytes) {
    alignment = bytes;
    return uint32("general.alignment", bytes);
  }

  /** Adds to the count of metadata entries that the header claims. */
  public GgufWriter claimMetadata(long more) {
    metadataCount += more;
    return this;
  }

  /** Adds to the count of tensors that the header claims. */
  public GgufWriter claimTensors(long more) {
    tensorCount += more;
    return this;
  }

  /** Writes an entry of any type from the bytes of its value. */
  public GgufWriter raw(String key, int type, byte[] value) {
    text(metadata, key);
    int32(metadata, type);
    metadata.writeBytes(value);
    metadataCount++;
    return this;
  }

  /** Writes a string. */
  public GgufWriter string(String key, String value) {
    return raw(key, 8, bytesOf(value));
  }

  /** Writes a u32. */
  public GgufWriter uint32(String key, long value) {
    return raw(key, 4, little(4).putInt((int) value).array());
  }

  /** Writes an f32. */
  public GgufWriter float32(String key, float value) {
    return raw(key, 6, little(4).putFloat(value).array());
  }

  /** Writes a bool. */
  public GgufWriter bool(String key, boolean value) {
    return raw(key, 7, new byte[] {(byte) (value ? 1 : 0)});
  }

  /** Writes an array of strings. */
  public GgufWriter strings(String key, List<String> values) {
    ByteArrayOutputStream out = array(8, values.size());
    values.forEach(value -> text(out, value));
    return raw(key, 9, out.toByteArray());
  }

  /** Writes an array of f32. */
  public GgufWriter floats(String key, float... values) {
    ByteArrayOutputStream out = array(6, values.length);
    for (float value : values) {
      int32(out, Float.floatToRawIntBits(value));
    }
    return raw(key, 9, out.toByteArray());
  }

  /** Writes an array of i32. */
  public GgufWriter integers(String key, int... values) {
    ByteArrayOutputStream out = array(5, values.length);
    for (int value : values) {
      int32(out, value);
    }
    return raw(key, 9, out.toByteArray());
  }

  /** Adds a tensor behind the ones before. */
  public GgufWriter tensor(String name, int type, byte[] content, long... shape) {
    while (data.size() % alignment != 0) {
      data.write(0);
    }
    tensorAt(name, type, data.size(), shape);
    data.writeBytes(content);
    return this;
  }

  /** Adds a tensor's line in the header without any data. */
  public GgufWriter tensorAt(String name, int type, long offset, long... shape) {
    text(tensors, name);
    int32(tensors, shape.length);
    for (long extent : shape) {
      int64(tensors, extent);
    }
    int32(tensors, type);
    int64(tensors, offset);
    tensorCount++;
    return this;
  }

  /** The file. */
  public byte[] toByteArray() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.writeBytes("GGUF".getBytes(StandardCharsets.US_ASCII));
    int32(out, version);
    int64(out, tensorCount);
    int64(out, metadataCount);
    out.writeBytes(metadata.toByteArray());
    out.writeBytes(tensors.toByteArray());
    while (data.size() > 0 && out.size() % alignment != 0) {
      out.write(0);
    }
    out.writeBytes(data.toByteArray());
    return out.toByteArray();
  }

  /** The bytes of an array's head: element type and count. */
  public static ByteArrayOutputStream array(int elementType, long count) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    int32(out, elementType);
    int64(out, count);
    return out;
  }

  /** A string as it lies in a file. */
  public static byte[] bytesOf(String value) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    text(out, value);
    return out.toByteArray();
  }

  /** A little-endian buffer. */
  public static ByteBuffer little(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static void text(ByteArrayOutputStream out, String value) {
    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
    int64(out, bytes.length);
    out.writeBytes(bytes);
  }

  private static void int32(ByteArrayOutputStream out, int value) {
    out.writeBytes(little(4).putInt(value).array());
  }

  private static void int64(ByteArrayOutputStream out, long value) {
    out.writeBytes(little(8).putLong(value).array());
  }
}
