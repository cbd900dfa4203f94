package dev.tacho.metrics.event;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The id of a request as events carry it: its first bytes in UTF-8, made by the thread that submits the request so that
 * the engine thread only copies words. Immutable.
 */
public final class RequestId {
  private final long[] words;
  private final int bytes;

  private RequestId(long[] words, int bytes) {
    this.words = words;
    this.bytes = bytes;
  }

  private RequestId(byte[] utf8) {
    bytes = utf8.length;
    words = new long[(bytes + 7) / 8];
    ByteBuffer.wrap(Arrays.copyOf(utf8, words.length * 8)).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words);
  }

  /** An id, cut between characters after {@value EventDescriptor#MAX_REQUEST_ID_BYTES} bytes of UTF-8. */
  public static RequestId of(String id) {
    return new RequestId(EventDescriptor.utf8(id, EventDescriptor.MAX_REQUEST_ID_BYTES));
  }

  /** The id that a record holds. */
  static RequestId read(MemorySegment memory, long at, int bytes) {
    long[] words = new long[(bytes + 7) / 8];
    for (int i = 0; i < words.length; i++) {
      words[i] = memory.get(EventDescriptor.LONG, at + 8L * i);
    }
    return new RequestId(words, bytes);
  }

  /** Bytes of UTF-8. */
  int bytes() {
    return bytes;
  }

  /** Writes them, filled up with zeros to whole words. */
  void write(MemorySegment memory, long at) {
    for (int i = 0; i < words.length; i++) {
      memory.set(EventDescriptor.LONG, at + 8L * i, words[i]);
    }
  }

  @Override
  public String toString() {
    byte[] text = new byte[words.length * 8];
    ByteBuffer.wrap(text).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().put(words);
    return new String(text, 0, bytes, StandardCharsets.UTF_8);
  }
}
