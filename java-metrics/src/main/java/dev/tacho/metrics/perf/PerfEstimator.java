package dev.tacho.metrics.perf;

import dev.tacho.metrics.event.StepShape;
import org.jspecify.annotations.Nullable;

/**
 * Estimates the floating point operations and the memory traffic of a step on one device, as vLLM's MFU metrics do: no
 * causal half, a row of logits for each prefill, weights read once a step and reread by an empty one. The numbers agree
 * with vLLM's to the last digit, so the arithmetic follows it: exact integers, which become doubles only where layers
 * are divided over pipeline stages and where a weight takes half a byte.
 *
 * <p>Immutable; any thread.
 */
public final class PerfEstimator {
  private final ModelShape model;
  private final boolean keepsParts;
  private final long q;
  private final long kv;
  private final double layers;
  private final double fullLayers;
  private final double windowedLayers;
  private final @Nullable LatentAttention latentAttention;
  private final FeedForward feedForward;
  private final long vocab;

  /** An estimator for a model. */
  public PerfEstimator(ModelShape model) {
    this(model, false);
  }

  /**
   * An estimator for a model.
   *
   * @param model the model
   * @param keepsParts true if an estimate keeps the parts of the work as well, for the debug log
   */
  public PerfEstimator(ModelShape model, boolean keepsParts) {
    this.model = model;
    this.keepsParts = keepsParts;
    int stages = model.pipelineParallel();
    this.q = Math.max(1, model.heads() / model.tensorParallel());
    this.kv = Math.max(1, model.kvHeads() / model.tensorParallel());
    this.layers = (double) model.layers() / stages;
    this.fullLayers = (double) (model.layers() - model.slidingLayers()) / stages;
    this.windowedLayers = (double) model.slidingLayers() / stages;
    LatentShape latent = model.latent();
    this.latentAttention = latent == null ? null : new LatentAttention(model, latent);
    this.feedForward = new FeedForward(model);
    this.vocab = model.vocab() / model.tensorParallel();
  }

  /**
   * Estimates a step.
   *
   * @param step sums over its sequences; the windowed ones made with this model's window
   * @param sink gets each part
   */
  public void estimate(StepShape step, WorkSink sink) {
    if (model.weightBytes() > 0) {
      if (latentAttention != null) {
        latentAttention.estimate(step, sink);
      } else {
        attention(step, sink);
      }
      feedForward.estimate(step, sink);
    }
    unembed(step, sink);
  }

  /**
   * Estimates a step into a sum, and its parts too if the estimator keeps them.
   *
   * @param step sums over its sequences
   * @param work is added to
   */
  public void estimate(StepShape step, WorkEstimate work) {
    estimate(step, (WorkSink) work);
    if (keepsParts) {
      long start = System.nanoTime();
      estimate(step, (WorkSink) work.parts());
      work.parts().step(step, System.nanoTime() - start);
    }
  }

  private void attention(StepShape step, WorkSink sink) {
    long tokens = step.tokens();
    long hidden = model.hidden();
    long dim = model.headDim();
    long a = model.activationBytes();
    double w = model.weightBytes();
    sink.flops("attn.qkv_proj", truncate(Products.rounded(2, tokens, hidden, q + 2 * kv, dim) * layers));
    sink.flops("attn.out_proj", truncate(Products.rounded(2, tokens, hidden, q, dim) * layers));
    double scores = 0;
    if (fullLayers > 0) {
      scores += Products.rounded(2, q, step.product(), dim) * fullLayers;
    }
    if (windowedLayers > 0) {
      scores += Products.rounded(2, q, step.productWindowed(), dim) * windowedLayers;
    }
    sink.flops("attn.attn_qk", truncate(scores));
    sink.flops("attn.attn_av", truncate(scores));

    sink.read("attn.qkv_input", truncate(Products.rounded(tokens, hidden, a) * layers));
    sink.read("attn.qkv_weight", truncate(Products.rounded(hidden, q + 2 * kv, dim) * w * layers));
    if (tokens > 0) {
      double input = attentionInput(step, step.prefillContext(), step.decodeContext(), fullLayers)
          + attentionInput(step, step.prefillContextWindowed(), step.decodeContextWindowed(), windowedLayers);
      sink.read("attn.attn_input", truncate(input));
    }
    sink.read("attn.out_input", truncate(Products.rounded(tokens, q, dim, a) * layers));
    sink.read("attn.out_weight", truncate(Products.rounded(q, dim, hidden) * w * layers));

    sink.write("attn.qkv_output", truncate(Products.rounded(tokens, q + 2 * kv, dim, a) * layers));
    sink.write("attn.kv_cache", truncate(Products.rounded(2, tokens, kv, dim, model.cacheBytes()) * layers));
    sink.write("attn.out_output", truncate(Products.rounded(tokens, hidden, a) * layers));
  }

  private double attentionInput(StepShape step, long prefillContext, long decodeContext, double count) {
    if (count <= 0) {
      return 0;
    }
    long dim = model.headDim();
    long a = model.activationBytes();
    double input = 0;
    if (step.prefillTokens() > 0) {
      long elements = Math.addExact(Math.multiplyExact(step.prefillTokens(), q),
          Math.multiplyExact(2 * kv, prefillContext));
      input += Products.rounded(elements, dim, a) * count;
    }
    if (step.decodeTokens() > 0) {
      input += Products.rounded(step.decodeTokens(), q, dim, a) * count
          + Products.rounded(2, decodeContext, kv, dim, model.cacheBytes()) * count;
    }
    return input;
  }

  private void unembed(StepShape step, WorkSink sink) {
    long rows = step.logitTokens();
    long hidden = model.hidden();
    long a = model.activationBytes();
    sink.flops("unembed.unembed", Products.exact(2, rows, hidden, vocab));
    sink.read("unembed.input", Products.exact(rows, hidden, a));
    sink.read("unembed.weight", Products.exact(hidden, vocab, a));
    sink.write("unembed.output", Products.exact(rows, vocab, a));
  }

  private static long truncate(double value) {
    return (long) value;
  }
}
