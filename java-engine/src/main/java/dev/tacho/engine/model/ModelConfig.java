package dev.tacho.engine.model;

import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.kernel.AttentionShape;
import dev.tacho.engine.kernel.RopePairing;
import java.util.Set;

/**
 * The shape of a decoder of the Llama family, as the metadata of its file say it. Every value has been checked for
 * range and divisibility, so that what is computed from them fits an int where it must; the tensors are checked
 * against it when {@link Weights} are loaded.
 *
 * @param architecture {@code general.architecture}
 * @param layers blocks
 * @param embeddingLength elements of a token's hidden state
 * @param feedForwardLength elements between the two halves of the feed-forward part
 * @param heads query heads, a multiple of kvHeads
 * @param kvHeads heads of keys and values
 * @param headDim elements of a head
 * @param rmsEpsilon added to the mean square in every norm
 * @param contextLength positions that the model was made for
 * @param vocabSize token ids are in [0, vocabSize)
 * @param slidingWindow keys that a query sees, itself included; 0 for all
 * @param rope how positions enter
 */
public record ModelConfig(
    String architecture,
    int layers,
    int embeddingLength,
    int feedForwardLength,
    int heads,
    int kvHeads,
    int headDim,
    float rmsEpsilon,
    int contextLength,
    int vocabSize,
    int slidingWindow,
    RopeConfig rope) {
  /** Values of {@code general.architecture} that have a runner. */
  public static final Set<String> SUPPORTED_ARCHITECTURES = Set.of("llama");

  /** No factor of rotary positions is larger. */
  static final double MAX_ROPE_FACTOR = 1e6;

  private static final int MAX_LAYERS = 1 << 10;
  private static final int MAX_HEADS = 1 << 12;
  private static final int MAX_HEAD_DIM = 512;
  private static final int MAX_WIDTH = 1 << 20;
  private static final int MAX_FEED_FORWARD = 1 << 22;
  /** A token of the prompt and one of the output. */
  private static final int MIN_CONTEXT = 2;

  private static final int MAX_CONTEXT = 1 << 24;
  private static final int MAX_VOCABULARY = 1 << 24;
  private static final double MIN_EPSILON = 1e-12;
  private static final double MAX_ROPE_BASE = 1e12;

  /**
   * Reads and checks the metadata of a file.
   *
   * @throws UnsupportedException for an architecture or a feature that there is no runner for
   * @throws ModelFormatException for a value that is missing, out of range or contradicts another one
   */
  public static ModelConfig of(GgufFile file) {
    String architecture = file.string("general.architecture");
    if (!SUPPORTED_ARCHITECTURES.contains(architecture)) {
      throw new UnsupportedException(
          "architecture " + architecture + " of " + file.path(), "there are runners for " + SUPPORTED_ARCHITECTURES);
    }
    return new Reader(file, architecture).read();
  }

  /** What attention needs to know of every layer. */
  public AttentionShape attentionShape() {
    return new AttentionShape(
        heads, kvHeads, headDim, (float) (1 / Math.sqrt(headDim)), slidingWindow, 0, null);
  }

  /** Elements of the queries of a token, all heads side by side. */
  public int queryLength() {
    return heads * headDim;
  }

  /** Elements of the keys (or the values) of a token, all heads side by side. */
  public int keyValueLength() {
    return kvHeads * headDim;
  }

  /** Reads keys that begin with the architecture's name. */
  private static final class Reader {
    private final GgufFile file;
    private final String architecture;

    Reader(GgufFile file, String architecture) {
      this.file = file;
      this.architecture = architecture;
    }

    ModelConfig read() {
      refuseUnlessZero("expert_count", "mixtures of experts have no runner");
      int layers = integer("block_count", 1, MAX_LAYERS);
      int embedding = integer("embedding_length", 1, MAX_WIDTH);
      int feedForward = perLayer("feed_forward_length", 1, MAX_FEED_FORWARD, layers);
      int heads = perLayer("attention.head_count", 1, MAX_HEADS, layers);
      int kvHeads =
          file.contains(key("attention.head_count_kv"))
              ? perLayer("attention.head_count_kv", 1, MAX_HEADS, layers)
              : heads;
      if (heads % kvHeads != 0) {
        throw fault("attention.head_count_kv", "a divisor of the " + heads + " query heads", kvHeads);
      }
      int headDim = headDim(embedding, heads);
      int context = integer("context_length", MIN_CONTEXT, MAX_CONTEXT);
      return new ModelConfig(
          architecture,
          layers,
          embedding,
          feedForward,
          heads,
          kvHeads,
          headDim,
          (float) number("attention.layer_norm_rms_epsilon", MIN_EPSILON, 1),
          context,
          vocabulary(),
          file.contains(key("attention.sliding_window"))
              ? integer("attention.sliding_window", 0, Integer.MAX_VALUE)
              : 0,
          rope(headDim));
    }

    private int headDim(int embedding, int heads) {
      int headDim;
      if (file.contains(key("attention.key_length"))) {
        headDim = integer("attention.key_length", 2, MAX_HEAD_DIM);
      } else if (embedding % heads == 0) {
        headDim = embedding / heads;
      } else {
        throw fault("attention.head_count", "a divisor of embedding_length " + embedding, heads);
      }
      if (headDim < 2 || headDim > MAX_HEAD_DIM || headDim % 2 != 0) {
        throw fault("attention.key_length", "an even number in [2, " + MAX_HEAD_DIM + "]", headDim);
      }
      if (file.contains(key("attention.value_length"))) {
        int valueDim = integer("attention.value_length", 2, MAX_HEAD_DIM);
        if (valueDim != headDim) {
          throw new UnsupportedException(
              key("attention.value_length") + " " + valueDim + " of " + file.path(),
              "values must be as long as keys, which have " + headDim + " elements");
        }
      }
      return headDim;
    }

    private int vocabulary() {
      int size;
      if (file.contains(key("vocab_size"))) {
        size = integer("vocab_size", 1, MAX_VOCABULARY);
      } else {
        long rows = file.tensor(TensorManifest.TOKEN_EMBEDDING).shape().getLast();
        if (rows < 1 || rows > MAX_VOCABULARY) {
          throw new ModelFormatException(
              file.path().toString(),
              -1,
              "rows of tensor " + TensorManifest.TOKEN_EMBEDDING,
              "a number in [1, " + MAX_VOCABULARY + "]",
              Long.toString(rows));
        }
        size = (int) rows;
      }
      String tokens = "tokenizer.ggml.tokens";
      if (file.contains(tokens) && file.arrayLength(tokens) > size) {
        throw new ModelFormatException(
            file.path().toString(),
            -1,
            tokens,
            "at most the " + size + " entries of the vocabulary",
            Long.toString(file.arrayLength(tokens)));
      }
      return size;
    }

    private RopeConfig rope(int headDim) {
      int dimensions =
          file.contains(key("rope.dimension_count")) ? integer("rope.dimension_count", 2, headDim) : headDim;
      if (dimensions % 2 != 0) {
        throw fault("rope.dimension_count", "an even number", dimensions);
      }
      double base = file.contains(key("rope.freq_base")) ? number("rope.freq_base", 1, MAX_ROPE_BASE) : 10_000;
      return new RopeConfig(RopePairing.ADJACENT, dimensions, base, linearFactor());
    }

    private double linearFactor() {
      String type = file.string(key("rope.scaling.type"), "linear");
      return switch (type) {
        case "none" -> 1;
        case "linear" -> {
          for (String name : new String[] {"rope.scaling.factor", "rope.scale_linear"}) {
            if (file.contains(key(name))) {
              double factor = number(name, 0, MAX_ROPE_FACTOR);
              yield factor == 0 ? 1 : factor;
            }
          }
          yield 1;
        }
        default ->
            throw new UnsupportedException(
                key("rope.scaling.type") + " " + type + " of " + file.path(),
                "none, linear, and factors in a tensor rope_freqs.weight");
      };
    }

    private String key(String name) {
      return architecture + "." + name;
    }

    private void refuseUnlessZero(String name, String reason) {
      long value = file.integer(key(name), 0);
      if (value != 0) {
        throw new UnsupportedException(key(name) + " " + value + " of " + file.path(), reason);
      }
    }

    private int integer(String name, int min, int max) {
      return check(name, file.integer(key(name)), min, max);
    }

    private int check(String name, long value, int min, int max) {
      if (value < min || value > max) {
        throw fault(name, "a number in [" + min + ", " + max + "]", value);
      }
      return (int) value;
    }

    /** A number, or an array with the same number for each layer. */
    private int perLayer(String name, int min, int max, int layers) {
      if (!file.isArray(key(name))) {
        return integer(name, min, max);
      }
      int[] values = file.integers(key(name));
      if (values.length != layers) {
        throw fault(name, "one number for each of the " + layers + " layers", values.length);
      }
      for (int value : values) {
        if (check(name, value, min, max) != values[0]) {
          throw new UnsupportedException(
              key(name) + " with both " + values[0] + " and " + value + " in " + file.path(),
              "it must be the same in all layers");
        }
      }
      return values[0];
    }

    private double number(String name, double min, double max) {
      double value = file.number(key(name));
      if (!(value >= min && value <= max)) {
        throw fault(name, "a number in [" + min + ", " + max + "]", value);
      }
      return value;
    }

    private ModelFormatException fault(String name, String expected, Number found) {
      return new ModelFormatException(file.path().toString(), -1, key(name), expected, found.toString());
    }
  }
}
