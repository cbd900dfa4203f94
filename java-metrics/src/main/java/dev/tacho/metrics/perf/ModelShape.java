package dev.tacho.metrics.perf;

import org.jspecify.annotations.Nullable;

/**
 * What the work estimate of a step must know of a transformer and of how it is divided over devices. Immutable.
 *
 * @param layers transformer layers, L
 * @param hidden size of the residual stream, D
 * @param heads attention heads
 * @param kvHeads key and value heads
 * @param headDim elements of a head, d
 * @param intermediate size of the feed-forward layer, I
 * @param vocab rows of the unembedding, V
 * @param activationBytes bytes of an activation element, a
 * @param weightBytes bytes of a weight element, w; 0.5 for four bits; 0 if unknown: attention and feed-forward are then
 *     left out of the estimate
 * @param cacheBytes bytes of a KV cache element, k
 * @param slidingWindow tokens that a windowed layer sees, 0 if none
 * @param slidingLayers layers with the window
 * @param tensorParallel devices that share the heads and the vocabulary
 * @param pipelineParallel devices that share the layers
 * @param dataParallel replicas that share the feed-forward layers
 * @param latent latent attention, or null if keys and values are cached by head
 * @param experts layers with experts
 * @param expertParallel true if experts are divided over devices as wholes, false if each is cut
 */
public record ModelShape(
    int layers,
    int hidden,
    int heads,
    int kvHeads,
    int headDim,
    int intermediate,
    int vocab,
    int activationBytes,
    double weightBytes,
    int cacheBytes,
    long slidingWindow,
    int slidingLayers,
    int tensorParallel,
    int pipelineParallel,
    int dataParallel,
    @Nullable LatentShape latent,
    ExpertShape experts,
    boolean expertParallel) {

  /** Checks the sizes. */
  public ModelShape {
    positive("layers", layers);
    positive("hidden", hidden);
    positive("heads", heads);
    positive("kvHeads", kvHeads);
    positive("headDim", headDim);
    positive("intermediate", intermediate);
    positive("vocab", vocab);
    positive("activationBytes", activationBytes);
    positive("cacheBytes", cacheBytes);
    positive("tensorParallel", tensorParallel);
    positive("pipelineParallel", pipelineParallel);
    positive("dataParallel", dataParallel);
    if (!(weightBytes >= 0)) {
      throw new IllegalArgumentException("weightBytes " + weightBytes + ": must not be negative");
    }
    if (experts.layers() > layers) {
      throw new IllegalArgumentException("experts in " + experts.layers() + " layers of " + layers);
    }
    if (slidingLayers < 0 || slidingLayers > layers || (slidingLayers > 0 && slidingWindow <= 0)) {
      throw new IllegalArgumentException("slidingLayers " + slidingLayers + " with a window of " + slidingWindow
          + ": must be in [0, " + layers + "], and 0 without a window");
    }
  }

  /**
   * A dense model on one device, without a sliding window.
   *
   * @param layers transformer layers
   * @param hidden size of the residual stream
   * @param heads attention heads
   * @param kvHeads key and value heads
   * @param headDim elements of a head
   * @param intermediate size of the feed-forward layer
   * @param vocab rows of the unembedding
   * @param activationBytes bytes of an activation element
   * @param weightBytes bytes of a weight element
   * @param cacheBytes bytes of a KV cache element
   */
  public static ModelShape dense(int layers, int hidden, int heads, int kvHeads, int headDim, int intermediate,
      int vocab, int activationBytes, double weightBytes, int cacheBytes) {
    return new ModelShape(layers, hidden, heads, kvHeads, headDim, intermediate, vocab, activationBytes, weightBytes,
        cacheBytes, 0, 0, 1, 1, 1, null, ExpertShape.NONE, false);
  }

  /** The same model with a sliding window in some layers. */
  public ModelShape withSlidingWindow(long window, int windowedLayers) {
    return new ModelShape(layers, hidden, heads, kvHeads, headDim, intermediate, vocab, activationBytes, weightBytes,
        cacheBytes, window, windowedLayers, tensorParallel, pipelineParallel, dataParallel, latent, experts,
        expertParallel);
  }

  /** The same model with latent attention. */
  public ModelShape withLatentAttention(LatentShape shape) {
    return new ModelShape(layers, hidden, heads, kvHeads, headDim, intermediate, vocab, activationBytes, weightBytes,
        cacheBytes, slidingWindow, slidingLayers, tensorParallel, pipelineParallel, dataParallel, shape, experts,
        expertParallel);
  }

  /** The same model with experts in some layers, divided over devices as wholes or each cut. */
  public ModelShape withExperts(ExpertShape shape, boolean dividedAsWholes) {
    return new ModelShape(layers, hidden, heads, kvHeads, headDim, intermediate, vocab, activationBytes, weightBytes,
        cacheBytes, slidingWindow, slidingLayers, tensorParallel, pipelineParallel, dataParallel, latent, shape,
        dividedAsWholes);
  }

  /** The same model divided over devices; the estimate is that of one of them. */
  public ModelShape withParallelism(int tensor, int pipeline, int data) {
    return new ModelShape(layers, hidden, heads, kvHeads, headDim, intermediate, vocab, activationBytes, weightBytes,
        cacheBytes, slidingWindow, slidingLayers, tensor, pipeline, data, latent, experts, expertParallel);
  }

  private static void positive(String name, int value) {
    if (value <= 0) {
      throw new IllegalArgumentException(name + " " + value + ": must be positive");
    }
  }
}
