package dev.tacho.engine;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Set;

/** Token ids are the bytes of UTF-8; 256 ends a text. */
final class ByteCodec implements TextCodec {
  static final int EOS = 256;
  static final int VOCAB_SIZE = 257;

  private final Runnable beforeEncoding;
  private volatile boolean closed;

  ByteCodec() {
    this(() -> {});
  }

  /**
   * @param beforeEncoding is run on the encoding thread, before each text
   */
  ByteCodec(Runnable beforeEncoding) {
    this.beforeEncoding = beforeEncoding;
  }

  boolean closed() {
    return closed;
  }

  @Override
  public int[] encode(String text) {
    beforeEncoding.run();
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    int[] ids = new int[bytes.length];
    for (int i = 0; i < ids.length; i++) {
      ids[i] = bytes[i] & 0xFF;
    }
    return ids;
  }

  @Override
  public int[] encodePiece(String text) {
    return encode(text);
  }

  @Override
  public String decode(int[] ids) {
    TextStream stream = stream(ids);
    StringBuilder text = new StringBuilder();
    for (int id : ids) {
      text.append(stream.append(id));
    }
    return text.append(stream.flush()).toString();
  }

  @Override
  public String tokenText(int id) {
    return decode(new int[] {id});
  }

  @Override
  public int vocabSize() {
    return VOCAB_SIZE;
  }

  @Override
  public Set<Integer> eosTokenIds() {
    return Set.of(EOS);
  }

  @Override
  public TextStream stream(int[] promptIds) {
    return new ByteStream();
  }

  @Override
  public void close() {
    closed = true;
  }

  private static final class ByteStream implements TextStream {
    private final CharsetDecoder decoder =
        StandardCharsets.UTF_8
            .newDecoder()
            .onMalformedInput(CodingErrorAction.REPLACE)
            .onUnmappableCharacter(CodingErrorAction.REPLACE);
    private final ByteBuffer bytes = ByteBuffer.allocate(8);
    private final CharBuffer chars = CharBuffer.allocate(16);

    @Override
    public String append(int id) {
      if (id >= EOS) {
        return "";
      }
      bytes.put((byte) id);
      return decode(false);
    }

    @Override
    public String flush() {
      return decode(true);
    }

    private String decode(boolean end) {
      bytes.flip();
      decoder.decode(bytes, chars, end);
      bytes.compact();
      chars.flip();
      String text = chars.toString();
      chars.clear();
      return text;
    }
  }
}
