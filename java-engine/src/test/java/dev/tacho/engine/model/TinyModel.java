package dev.tacho.engine.model;

import dev.tacho.engine.format.GgufWriter;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Makes GGUF files of small random Llama models for tests: right ones, and wrong ones by replacing or dropping a key or
 * a tensor.
 */
final class TinyModel {
  static final int LAYERS = 2;
  static final int EMBEDDING = 64;
  static final int FEED_FORWARD = 96;
  static final int HEADS = 4;
  static final int KV_HEADS = 2;
  static final int HEAD_DIM = 16;
  static final int VOCABULARY = 200;
  static final int CONTEXT = 512;

  /** Of a wide model, whose rows are whole blocks of every type. */
  private static final int WIDE_EMBEDDING = 256;

  private static final int WIDE_FEED_FORWARD = 512;

  private final Random random;
  private final Function<String, DType> types;
  private final boolean dequantised;
  private final Map<String, Consumer<GgufWriter>> keys = new LinkedHashMap<>();
  private final Map<String, Consumer<GgufWriter>> tensors = new LinkedHashMap<>();

  /**
   * @param seed of the weights
   * @param matrices type of all matrices
   */
  TinyModel(long seed, DType matrices) {
    this(seed, name -> matrices, EMBEDDING, FEED_FORWARD, false);
  }

  /**
   * A model whose rows are whole blocks of every type.
   *
   * @param seed of the weights
   * @param types of the matrices, by their names
   * @param dequantised whether matrices are written as the floats that the types stand for
   */
  static TinyModel wide(long seed, Function<String, DType> types, boolean dequantised) {
    return new TinyModel(seed, types, WIDE_EMBEDDING, WIDE_FEED_FORWARD, dequantised);
  }

  private TinyModel(
      long seed, Function<String, DType> types, int embedding, int feedForward, boolean dequantised) {
    this.random = new Random(seed);
    this.types = types;
    this.dequantised = dequantised;
    int headDim = embedding / HEADS;
    text("general.architecture", "llama");
    number("llama.block_count", LAYERS);
    number("llama.context_length", CONTEXT);
    number("llama.embedding_length", embedding);
    number("llama.feed_forward_length", feedForward);
    number("llama.attention.head_count", HEADS);
    number("llama.attention.head_count_kv", KV_HEADS);
    real("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    real("llama.rope.freq_base", 10_000);
    matrix("token_embd.weight", VOCABULARY, embedding);
    for (int layer = 0; layer < LAYERS; layer++) {
      String prefix = "blk." + layer + ".";
      vector(prefix + "attn_norm.weight", DType.F32, embedding);
      matrix(prefix + "attn_q.weight", HEADS * headDim, embedding);
      matrix(prefix + "attn_k.weight", KV_HEADS * headDim, embedding);
      matrix(prefix + "attn_v.weight", KV_HEADS * headDim, embedding);
      matrix(prefix + "attn_output.weight", embedding, HEADS * headDim);
      vector(prefix + "ffn_norm.weight", DType.F32, embedding);
      matrix(prefix + "ffn_gate.weight", feedForward, embedding);
      matrix(prefix + "ffn_up.weight", feedForward, embedding);
      matrix(prefix + "ffn_down.weight", embedding, feedForward);
    }
    vector("output_norm.weight", DType.F32, embedding);
    matrix("output.weight", VOCABULARY, embedding);
  }

  /** A string entry. */
  TinyModel text(String key, String value) {
    return key(key, writer -> writer.string(key, value));
  }

  /** An unsigned 32-bit entry. */
  TinyModel number(String key, long value) {
    return key(key, writer -> writer.uint32(key, value));
  }

  /** A 32-bit float entry. */
  TinyModel real(String key, float value) {
    return key(key, writer -> writer.float32(key, value));
  }

  /** An entry of any kind. */
  TinyModel key(String key, Consumer<GgufWriter> entry) {
    keys.put(key, entry);
    return this;
  }

  /** Leaves a key or a tensor out. */
  TinyModel without(String name) {
    keys.remove(name);
    tensors.remove(name);
    return this;
  }

  /** A random matrix of the model's type. */
  TinyModel matrix(String name, int rows, int columns) {
    float deviation = (float) (1 / Math.sqrt(columns));
    DType type = types.apply(name);
    byte[] content = random(type, rows * columns, 0, deviation);
    return dequantised
        ? tensor(name, DType.F32.id(), floats(type, content, rows * columns), columns, rows)
        : tensor(name, type.id(), content, columns, rows);
  }

  /** A random vector around 1. */
  TinyModel vector(String name, DType dtype, int length) {
    return tensor(name, dtype.id(), random(dtype, length, 1, 0.2f), length);
  }

  /** Any tensor; replaces one of the same name. */
  TinyModel tensor(String name, int type, byte[] content, long... shape) {
    tensors.put(name, writer -> writer.tensor(name, type, content, shape));
    return this;
  }

  /** Writes the file. */
  Path write(Path file) {
    GgufWriter writer = new GgufWriter();
    keys.values().forEach(entry -> entry.accept(writer));
    tensors.values().forEach(entry -> entry.accept(writer));
    try {
      return Files.write(file, writer.toByteArray());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Random elements in file layout. */
  private byte[] random(DType dtype, int elements, float mean, float deviation) {
    byte[] content = new byte[(int) dtype.bytes(elements)];
    ByteBuffer bytes = ByteBuffer.wrap(content).order(ByteOrder.LITTLE_ENDIAN);
    switch (dtype) {
      case F32 -> fill(elements, () -> bytes.putFloat(next(mean, deviation)));
      case F16 -> fill(elements, () -> bytes.putShort(Float.floatToFloat16(next(mean, deviation))));
      case BF16 -> fill(elements, () -> bytes.putShort(Elements.bf16Bits(next(mean, deviation))));
      case Q4_K ->
          fill(elements / dtype.blockElements(), () -> {
            // A sub-block's scale is about 32 of 63, a code 7.5 of 15, and a min makes that nearly 0.
            float scale = deviation / 160 * (0.5f + random.nextFloat());
            bytes.putShort(Float.floatToFloat16(scale)).putShort(Float.floatToFloat16(7.5f * scale));
            bytes.put(randomBytes(dtype.blockBytes() - 2 * Short.BYTES));
          });
      case Q6_K ->
          fill(elements / dtype.blockElements(), () -> {
            bytes.put(randomBytes(dtype.blockBytes() - Short.BYTES));
            bytes.putShort(Float.floatToFloat16(deviation / 1350 * (0.5f + random.nextFloat())));
          });
      case Q8_0, Q4_0 -> {
        float codes = dtype == DType.Q8_0 ? 64 : 4;
        fill(elements / dtype.blockElements(), () -> {
          byte[] block = randomBytes(dtype.blockBytes() - Short.BYTES);
          bytes.putShort(Float.floatToFloat16(deviation / codes * (0.5f + random.nextFloat()))).put(block);
        });
      }
    }
    return content;
  }

  private byte[] randomBytes(int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  /** Elements in file layout as the floats that they stand for. */
  private static byte[] floats(DType dtype, byte[] content, int elements) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment segment = arena.allocate(content.length, Long.BYTES);
      MemorySegment.copy(content, 0, segment, ValueLayout.JAVA_BYTE, 0, content.length);
      ByteBuffer floats = ByteBuffer.allocate(elements * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      for (int i = 0; i < elements; i++) {
        floats.putFloat(Elements.get(dtype, segment, 0, i));
      }
      return floats.array();
    }
  }

  private float next(float mean, float deviation) {
    return mean + deviation * (float) random.nextGaussian();
  }

  private static void fill(int count, Runnable one) {
    for (int i = 0; i < count; i++) {
      one.run();
    }
  }
}
