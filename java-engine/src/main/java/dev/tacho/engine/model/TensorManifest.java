package dev.tacho.engine.model;

import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.format.GgufTensor;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Kernels;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Which tensors of a file a model of the Llama family needs, each checked against the config, and how much
 * memory each takes when loaded. Made before anything is allocated, so that a model that does not fit or does not
 * match is refused with nothing taken. Confined to the thread that loads.
 */
final class TensorManifest {
  static final String TOKEN_EMBEDDING = "token_embd.weight";
  static final String OUTPUT_NORM = "output_norm.weight";
  static final String OUTPUT = "output.weight";
  static final String ROPE_FACTORS = "rope_freqs.weight";

  private static final String LAYER_PREFIX = "blk.";

  /** Begins every matrix and vector on a cache line. */
  private static final int ALIGNMENT_BYTES = 64;

  /**
   * A tensor and what becomes of it.
   *
   * @param index in {@link #entries()}
   * @param tensor in the file
   * @param dtype its type there
   * @param n rows of a matrix, 1 for a vector
   * @param k columns of a matrix, elements of a vector
   * @param vector widened to float32 instead of packed
   * @param bytes what it takes when loaded
   */
  record Entry(int index, GgufTensor tensor, DType dtype, int n, int k, boolean vector, long bytes) {}

  private final GgufFile file;
  private final ModelConfig config;
  private final Kernels kernels;
  private final List<Entry> entries = new ArrayList<>();
  private final Map<String, Entry> byName = new HashMap<>();
  private long totalBytes;

  /**
   * Finds and checks all tensors.
   *
   * @throws ModelFormatException for a tensor that is missing or has another shape than the config says
   * @throws UnsupportedException for a tensor of a type that has no kernels, or one that this architecture lacks
   */
  TensorManifest(GgufFile file, ModelConfig config, Kernels kernels) {
    this.file = file;
    this.config = config;
    this.kernels = kernels;
    int embedding = config.embeddingLength();
    matrix(TOKEN_EMBEDDING, config.vocabSize(), embedding);
    for (int layer = 0; layer < config.layers(); layer++) {
      String prefix = layerPrefix(layer);
      vector(prefix + "attn_norm.weight", embedding);
      projection(prefix + "attn_q", config.queryLength(), embedding);
      projection(prefix + "attn_k", config.keyValueLength(), embedding);
      projection(prefix + "attn_v", config.keyValueLength(), embedding);
      projection(prefix + "attn_output", embedding, config.queryLength());
      vector(prefix + "ffn_norm.weight", embedding);
      projection(prefix + "ffn_gate", config.feedForwardLength(), embedding);
      projection(prefix + "ffn_up", config.feedForwardLength(), embedding);
      projection(prefix + "ffn_down", embedding, config.feedForwardLength());
    }
    vector(OUTPUT_NORM, embedding);
    if (file.findTensor(OUTPUT).isPresent()) {
      matrix(OUTPUT, config.vocabSize(), embedding);
    }
    if (file.findTensor(ROPE_FACTORS).isPresent()) {
      vector(ROPE_FACTORS, config.rope().dimensions() / 2);
    }
    refuseOthers();
  }

  /** What the names of a layer's tensors begin with. */
  static String layerPrefix(int layer) {
    return LAYER_PREFIX + layer + ".";
  }

  /** All tensors, in the order in which they are read. */
  List<Entry> entries() {
    return entries;
  }

  /** The tensor of a name, if the file has it. */
  Optional<Entry> find(String name) {
    return Optional.ofNullable(byName.get(name));
  }

  /** Bytes that all of them take when loaded. */
  long totalBytes() {
    return totalBytes;
  }

  /** The type that most elements of the layers' matrices have. */
  DType layerType() {
    Map<DType, Long> elements = new EnumMap<>(DType.class);
    for (Entry entry : entries) {
      if (!entry.vector() && entry.tensor().name().startsWith(LAYER_PREFIX)) {
        elements.merge(entry.dtype(), (long) entry.n() * entry.k(), Long::sum);
      }
    }
    return Collections.max(elements.entrySet(), Map.Entry.comparingByValue()).getKey();
  }

  private void projection(String name, int n, int k) {
    matrix(name + ".weight", n, k);
    String bias = name + ".bias";
    if (file.findTensor(bias).isPresent()) {
      vector(bias, n);
    }
  }

  private void matrix(String name, int n, int k) {
    GgufTensor tensor = checked(name, List.of((long) k, (long) n));
    DType dtype = file.dtype(tensor);
    if (k % dtype.blockElements() != 0) {
      throw new ModelFormatException(
          file.path().toString(),
          -1,
          "columns of tensor " + name,
          "a multiple of " + dtype.blockElements() + " for " + dtype,
          Integer.toString(k));
    }
    add(name, tensor, dtype, n, k, false, kernels.weightBytes(dtype, n, k));
  }

  private void vector(String name, int length) {
    GgufTensor tensor = checked(name, List.of((long) length));
    DType dtype = file.dtype(tensor);
    if (dtype.blockElements() != 1) {
      throw new UnsupportedException(
          "type " + dtype + " of the vector " + name + " in " + file.path(), "vectors are F32, F16 or BF16");
    }
    add(name, tensor, dtype, 1, length, true, DType.F32.bytes(length));
  }

  /** Bytes in whole cache lines, with which every tensor begins. */
  static long padded(long bytes) {
    return Math.addExact(bytes, ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
  }

  private void add(String name, GgufTensor tensor, DType dtype, int n, int k, boolean vector, long bytes) {
    Entry entry = new Entry(entries.size(), tensor, dtype, n, k, vector, bytes);
    entries.add(entry);
    byName.put(name, entry);
    totalBytes = Math.addExact(totalBytes, padded(bytes));
  }

  private GgufTensor checked(String name, List<Long> expected) {
    GgufTensor tensor = file.tensor(name);
    if (!withoutTrailingOnes(tensor.shape()).equals(withoutTrailingOnes(expected))) {
      throw new ModelFormatException(
          file.path().toString(),
          -1,
          "shape of tensor " + name,
          expected + " as the metadata of " + config.architecture() + " say",
          tensor.shape().toString());
    }
    return tensor;
  }

  private static List<Long> withoutTrailingOnes(List<Long> shape) {
    int dimensions = shape.size();
    while (dimensions > 1 && shape.get(dimensions - 1) == 1) {
      dimensions--;
    }
    return shape.subList(0, dimensions);
  }

  /** A tensor that is not used would mean a model that computes something else than its author meant. */
  private void refuseOthers() {
    Set<String> others = new HashSet<>();
    for (GgufTensor tensor : file.tensors()) {
      if (!byName.containsKey(tensor.name())) {
        others.add(tensor.name());
      }
    }
    if (!others.isEmpty()) {
      String first = others.stream().sorted().findFirst().orElseThrow();
      throw new UnsupportedException(
          "tensor " + first + " (and " + (others.size() - 1) + " more) of " + file.path(),
          "architecture " + config.architecture() + " has no such tensor in " + config.layers() + " layers");
    }
  }
}
