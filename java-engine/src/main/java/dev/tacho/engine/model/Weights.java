package dev.tacho.engine.model;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.tacho.engine.ModelFormatException;
import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.Weight;
import dev.tacho.engine.parallel.WorkerTeam;
import dev.tacho.metrics.perf.ModelShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The weights of a model, packed for one {@link Kernels} in anonymous memory. The file may be closed, shrink or vanish
 * afterwards: a mapping that loses its pages would take the JVM with it, this copy cannot. Only weights from a {@link
 * RepackCache} are a mapping, of the cache's file. Immutable and safe for any thread until closed.
 *
 * <p>Several engines may share the memory: each holds one reference ({@link #retain()}) and closes it once; the last
 * one frees the memory, and must do so after every step that reads it.
 */
public final class Weights implements AutoCloseable {
  /** Hears how far loading has come, on the thread that loads. */
  @FunctionalInterface
  public interface Progress {
    /**
     * Called after each tensor.
     *
     * @param loadedBytes packed so far
     * @param totalBytes to be packed
     * @param source where the tensor lies in the file, which is not read there again
     */
    void loaded(long loadedBytes, long totalBytes, MemorySegment source);
  }

  private final Arena arena;
  private final MemorySegment[] memory;
  private final ModelConfig config;
  private final Kernels kernels;
  private final long totalBytes;
  private final DType layerType;
  private final Weight tokenEmbedding;
  private final List<LayerWeights> layers;
  private final MemorySegment outputNorm;
  private final Projection output;
  private final double[] ropeFactors;
  private final AtomicInteger references = new AtomicInteger(1);

  private Weights(Arena arena, MemorySegment[] memory, ModelConfig config, Kernels kernels, TensorManifest manifest) {
    this.arena = arena;
    this.memory = memory;
    this.config = config;
    this.kernels = kernels;
    this.totalBytes = manifest.totalBytes();
    this.layerType = manifest.layerType();
    Places places = new Places(memory, manifest);
    tokenEmbedding = places.weight(TensorManifest.TOKEN_EMBEDDING);
    List<LayerWeights> list = new ArrayList<>(config.layers());
    for (int i = 0; i < config.layers(); i++) {
      list.add(places.layer(TensorManifest.layerPrefix(i)));
    }
    layers = List.copyOf(list);
    outputNorm = places.vector(TensorManifest.OUTPUT_NORM);
    boolean tied = manifest.find(TensorManifest.OUTPUT).isEmpty();
    output = new Projection(tied ? tokenEmbedding : places.weight(TensorManifest.OUTPUT), null);
    ropeFactors =
        manifest.find(TensorManifest.ROPE_FACTORS).isPresent()
            ? places.doubles(TensorManifest.ROPE_FACTORS)
            : new double[0];
  }

  /**
   * Bytes that {@link #load} will take, without taking any.
   *
   * @throws dev.tacho.engine.EngineException as load does
   */
  public static long requiredBytes(GgufFile file, ModelConfig config, Kernels kernels) {
    return new TensorManifest(file, config, kernels).totalBytes();
  }

  /**
   * Copies all weights out of a file, which may be closed as soon as this returns.
   *
   * @param file the model
   * @param config made from the same file
   * @param kernels what the weights are packed for
   * @param team does the packing; no other task may run on it meanwhile
   * @param progress hears of each tensor
   * @throws ModelFormatException for a tensor that is missing or has another shape than the config
   *     says
   * @throws dev.tacho.engine.UnsupportedException for a tensor type without kernels, or a tensor that the
   *     architecture lacks; nothing has been allocated then
   */
  public static Weights load(
      GgufFile file, ModelConfig config, Kernels kernels, WorkerTeam team, Progress progress) {
    TensorManifest manifest = new TensorManifest(file, config, kernels);
    return packed(file, config, kernels, manifest, team, progress, null);
  }

  /**
   * The same with weights that were packed before, if the cache has them: a mapping of its file, which must not shrink
   * while the weights are in use, and which the system does not lay on huge pages. Otherwise they are packed, and kept
   * there.
   */
  public static Weights load(
      GgufFile file, ModelConfig config, Kernels kernels, WorkerTeam team, Progress progress, RepackCache cache) {
    TensorManifest manifest = new TensorManifest(file, config, kernels);
    Weights kept = mapped(file, config, kernels, manifest, cache);
    return kept != null ? kept : packed(file, config, kernels, manifest, team, progress, cache);
  }

  @SuppressWarnings("MustBeClosedChecker") // the weights close it
  private static @Nullable Weights mapped(
      GgufFile file, ModelConfig config, Kernels kernels, TensorManifest manifest, RepackCache cache) {
    Arena arena = Arena.ofShared();
    Weights weights = null;
    try {
      MemorySegment all = cache.find(file, kernels, manifest, arena);
      if (all != null) {
        weights = new Weights(arena, divided(all, manifest), config, kernels, manifest);
      }
      return weights;
    } finally {
      if (weights == null) {
        arena.close();
      }
    }
  }

  @SuppressWarnings("MustBeClosedChecker") // the weights close it
  private static Weights packed(
      GgufFile file,
      ModelConfig config,
      Kernels kernels,
      TensorManifest manifest,
      WorkerTeam team,
      Progress progress,
      @Nullable RepackCache cache) {
    Arena arena = Arena.ofShared();
    try {
      MemorySegment all = allocated(arena, manifest, kernels);
      MemorySegment[] memory = divided(all, manifest);
      pack(file, manifest, memory, kernels, team, progress);
      Weights weights = new Weights(arena, memory, config, kernels, manifest);
      checkRopeFactors(file, weights.ropeFactors);
      if (cache != null) {
        cache.store(file, kernels, manifest, all);
      }
      return weights;
    } catch (Throwable failure) {
      arena.close();
      throw failure;
    }
  }

  /** One piece for all tensors, so that no huge page is filled in part more than once. */
  private static MemorySegment allocated(Arena arena, TensorManifest manifest, Kernels kernels) {
    try {
      return kernels.allocate(arena, manifest.totalBytes());
    } catch (OutOfMemoryError e) {
      throw new IllegalStateException(
          "the weights need " + manifest.totalBytes() + " bytes, which were not to be had", e);
    }
  }

  private static MemorySegment[] divided(MemorySegment all, TensorManifest manifest) {
    MemorySegment[] memory = new MemorySegment[manifest.entries().size()];
    long at = 0;
    for (TensorManifest.Entry entry : manifest.entries()) {
      memory[entry.index()] = all.asSlice(at, entry.bytes());
      at += TensorManifest.padded(entry.bytes());
    }
    return memory;
  }

  private static void pack(
      GgufFile file,
      TensorManifest manifest,
      MemorySegment[] memory,
      Kernels kernels,
      WorkerTeam team,
      Progress progress) {
    try (Arena scratch = Arena.ofShared()) {
      KernelWorker[] workers = new KernelWorker[team.size()];
      for (int i = 0; i < workers.length; i++) {
        workers[i] = new KernelWorker(scratch, 0);
      }
      long loadedBytes = 0;
      for (TensorManifest.Entry entry : manifest.entries()) {
        MemorySegment source = file.data(entry.tensor());
        MemorySegment target = memory[entry.index()];
        if (entry.vector()) {
          widen(entry.dtype(), source, target, entry.k());
        } else {
          Weight weight = new Weight(entry.dtype(), entry.n(), entry.k(), target);
          int groups = Math.ceilDiv(entry.n(), Kernels.ROW_GROUP);
          team.launch(
              member ->
                  kernels.weightPack(
                      weight, source, member.begin(groups), member.end(groups), workers[member.index()]));
          team.await();
        }
        loadedBytes += entry.bytes();
        progress.loaded(loadedBytes, manifest.totalBytes(), source);
      }
    }
  }

  /**
   * Hands over the memory of each tensor, whose contents nobody needs until {@link #reload}; it stays allocated, so
   * that addresses stay as they are. No step may run before that.
   *
   * @param discard drops the contents of a segment
   */
  public void discard(Consumer<MemorySegment> discard) {
    for (MemorySegment tensor : memory) {
      discard.accept(tensor);
    }
  }

  /**
   * Packs all weights anew, into the memory where they were; those of a mapping come back by themselves. After a
   * failure they are as good as discarded, and this may be called again.
   *
   * @param file the model that they were loaded from
   * @param team does the packing; no other task may run on it meanwhile
   * @param progress hears of each tensor
   * @throws ModelFormatException if the file holds another model now
   */
  public void reload(GgufFile file, WorkerTeam team, Progress progress) {
    TensorManifest manifest = new TensorManifest(file, config, kernels);
    boolean same = ModelConfig.of(file).equals(config) && manifest.entries().size() == memory.length;
    for (int i = 0; same && i < memory.length; i++) {
      same = manifest.entries().get(i).bytes() == memory[i].byteSize();
    }
    if (!same) {
      throw new ModelFormatException(
          file.path().toString(), -1, "the model's shape", "the one it had when it was loaded", "another one");
    }
    if (!memory[0].isReadOnly()) {
      pack(file, manifest, memory, kernels, team, progress);
    }
  }

  private static void checkRopeFactors(GgufFile file, double[] factors) {
    for (int i = 0; i < factors.length; i++) {
      if (!(factors[i] > 0 && factors[i] <= ModelConfig.MAX_ROPE_FACTOR)) {
        throw new ModelFormatException(
            file.path().toString(),
            -1,
            "element " + i + " of tensor " + TensorManifest.ROPE_FACTORS,
            "a number above 0 and up to " + ModelConfig.MAX_ROPE_FACTOR,
            Double.toString(factors[i]));
      }
    }
  }

  private static void widen(DType dtype, MemorySegment source, MemorySegment target, int length) {
    for (int i = 0; i < length; i++) {
      target.setAtIndex(JAVA_FLOAT, i, Elements.get(dtype, source, 0, i));
    }
  }

  /** The model's shape. */
  public ModelConfig config() {
    return config;
  }

  /**
   * What the estimate of a step's work needs to know. The bytes of a weight are those of the type that most elements of
   * the layers' matrices have, scales not counted.
   *
   * @param cacheType elements of the KV cache
   */
  public ModelShape shape(DType cacheType) {
    double weightBytes =
        switch (layerType) {
          case F32 -> 4;
          case F16, BF16 -> 2;
          case Q8_0 -> 1;
          case Q6_K -> 0.75;
          case Q4_0, Q4_K -> 0.5;
        };
    ModelShape full =
        ModelShape.dense(
            config.layers(),
            config.embeddingLength(),
            config.heads(),
            config.kvHeads(),
            config.headDim(),
            config.feedForwardLength(),
            config.vocabSize(),
            Float.BYTES,
            weightBytes,
            cacheType == DType.Q8_0 ? 1 : cacheType.blockBytes());
    return config.slidingWindow() == 0 ? full : full.withSlidingWindow(config.slidingWindow(), config.layers());
  }

  /** What the weights are packed for. */
  public Kernels kernels() {
    return kernels;
  }

  /** Bytes that they take. */
  public long bytes() {
    return totalBytes;
  }

  /**
   * Takes another reference, for an engine that shares the weights.
   *
   * @return this
   * @throws IllegalStateException if the memory has been freed
   */
  public Weights retain() {
    references.getAndUpdate(count -> {
      if (count == 0) {
        throw new IllegalStateException("weights are closed");
      }
      return count + 1;
    });
    return this;
  }

  /**
   * Gives a reference back; the last one frees the memory.
   *
   * @throws IllegalStateException if all of them have been given back
   */
  @Override
  public void close() {
    int left = references.decrementAndGet();
    if (left < 0) {
      references.incrementAndGet();
      throw new IllegalStateException("weights are closed already");
    }
    if (left == 0) {
      arena.close();
    }
  }

  /** The table of hidden states by token id, [vocabulary][embedding]. */
  Weight tokenEmbedding() {
    return tokenEmbedding;
  }

  /** Layer {@code i}. */
  LayerWeights layer(int i) {
    return layers.get(i);
  }

  /** Weight of the last norm, float32 [embedding]. */
  MemorySegment outputNorm() {
    return outputNorm;
  }

  /** From a hidden state to logits, [vocabulary][embedding]; the embedding table itself where they are tied. */
  Projection output() {
    return output;
  }

  /** Divisors of the rope frequencies, one a pair, or none. */
  double[] ropeFactors() {
    return ropeFactors.clone();
  }

  /** Tensors by name, where they lie now. */
  @SuppressWarnings("ArrayRecordComponent") // lives inside the constructor
  private record Places(MemorySegment[] memory, TensorManifest manifest) {
    LayerWeights layer(String prefix) {
      return new LayerWeights(
          vector(prefix + "attn_norm.weight"),
          projection(prefix + "attn_q"),
          projection(prefix + "attn_k"),
          projection(prefix + "attn_v"),
          projection(prefix + "attn_output"),
          vector(prefix + "ffn_norm.weight"),
          projection(prefix + "ffn_gate"),
          projection(prefix + "ffn_up"),
          projection(prefix + "ffn_down"));
    }

    Projection projection(String name) {
      String bias = name + ".bias";
      return new Projection(weight(name + ".weight"), manifest.find(bias).isPresent() ? vector(bias) : null);
    }

    Weight weight(String name) {
      TensorManifest.Entry entry = manifest.find(name).orElseThrow();
      return new Weight(entry.dtype(), entry.n(), entry.k(), data(entry));
    }

    MemorySegment vector(String name) {
      return data(manifest.find(name).orElseThrow());
    }

    double[] doubles(String name) {
      MemorySegment vector = vector(name);
      double[] values = new double[(int) (vector.byteSize() / Float.BYTES)];
      for (int i = 0; i < values.length; i++) {
        values[i] = vector.getAtIndex(JAVA_FLOAT, i);
      }
      return values;
    }

    private MemorySegment data(TensorManifest.Entry entry) {
      return memory[entry.index()].asReadOnly();
    }
  }
}
