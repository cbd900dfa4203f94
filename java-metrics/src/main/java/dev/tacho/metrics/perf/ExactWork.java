package dev.tacho.metrics.perf;

/**
 * Counts the work of a step from shapes as kernels on one worker count it: attention only over what a query sees, rows
 * of logits as they are, every weight once a step. For models without latent attention and experts, on one device.
 *
 * <p>Fill it with the sequences of a step, then {@link #count}. One thread.
 */
public final class ExactWork {
  /** Queries of a work item of attention; its keys and values are read once for all of them. */
  private static final int TILE_QUERIES = 32;

  private final ModelShape model;
  private long tokens;
  private long rows;
  private long visible;
  private long keys;
  private long visibleWindowed;
  private long keysWindowed;

  /**
   * Counts for a model.
   *
   * @param model the model
   * @throws IllegalArgumentException if it has latent attention or experts, or is divided over devices
   */
  public ExactWork(ModelShape model) {
    if (model.latent() != null || model.experts().layers() > 0
        || model.tensorParallel() * model.pipelineParallel() > 1) {
      throw new IllegalArgumentException("exact work is known of models without latent attention and experts, on one"
          + " device");
    }
    this.model = model;
  }

  /** Forgets the sequences. */
  public void reset() {
    tokens = 0;
    rows = 0;
    visible = 0;
    keys = 0;
    visibleWindowed = 0;
    keysWindowed = 0;
  }

  /**
   * Adds a sequence.
   *
   * @param scheduledTokens tokens that it computes
   * @param computedTokens tokens computed before
   * @param logitRows rows of logits: 1 if a token is sampled, 0 for the chunk of a prompt that is not its last
   */
  public void add(int scheduledTokens, long computedTokens, int logitRows) {
    tokens += scheduledTokens;
    rows += logitRows;
    long window = model.slidingWindow() > 0 ? model.slidingWindow() : Long.MAX_VALUE;
    for (int first = 0; first < scheduledTokens; first += TILE_QUERIES) {
      int count = Math.min(TILE_QUERIES, scheduledTokens - first);
      long position = computedTokens + first;
      keys += position + count;
      keysWindowed += position + count - Math.max(0, position - window + 1);
      for (int i = 0; i < count; i++) {
        visible += position + i + 1;
        visibleWindowed += Math.min(position + i + 1, window);
      }
    }
  }

  /** Hands over the work of the sequences added. */
  public void count(WorkSink sink) {
    long layers = model.layers();
    long hidden = model.hidden();
    long heads = model.heads();
    long kvHeads = model.kvHeads();
    long dim = model.headDim();
    long inner = model.intermediate();
    sink.read("embedding", weights(tokens * hidden));
    sink.write("embedding", activations(tokens * hidden));
    norms(2 * layers, tokens, sink);
    matmul("attn.q_proj", layers, tokens, heads * dim, hidden, sink);
    matmul("attn.kv_proj", 2 * layers, tokens, kvHeads * dim, hidden, sink);
    matmul("attn.out_proj", layers, tokens, hidden, heads * dim, sink);
    rope(heads, sink);
    rope(kvHeads, sink);
    long cached = 2 * tokens * kvHeads * dim * layers;
    sink.read("attn.kv_write", activations(cached));
    sink.write("attn.kv_write", cached * model.cacheBytes());
    attention(layers - model.slidingLayers(), visible, keys, sink);
    attention(model.slidingLayers(), visibleWindowed, keysWindowed, sink);
    matmul("ffn.up_gate", 2 * layers, tokens, inner, hidden, sink);
    elementwise("ffn.silu", 5, layers * tokens * inner, sink);
    matmul("ffn.down", layers, tokens, hidden, inner, sink);
    residual(2 * layers * tokens * hidden, sink);
    if (rows > 0) {
      norms(1, rows, sink);
      matmul("unembed", 1, rows, model.vocab(), hidden, sink);
    }
  }

  private void matmul(String part, long times, long m, long n, long k, WorkSink sink) {
    sink.flops(part, Products.exact(2, m, n, k, times));
    sink.read(part, times * (weights(n * k) + activations(m * k)));
    sink.write(part, activations(times * m * n));
  }

  private void norms(long times, long m, WorkSink sink) {
    long elements = times * m * model.hidden();
    sink.flops("norm", 4 * elements);
    sink.read("norm", activations(elements + times * model.hidden()));
    sink.write("norm", activations(elements));
  }

  private void rope(long heads, WorkSink sink) {
    long elements = model.layers() * tokens * model.headDim();
    sink.flops("attn.rope", 3 * elements * heads);
    sink.read("attn.rope", activations(elements * (heads + 1)));
    sink.write("attn.rope", activations(elements * heads));
  }

  private void attention(long layers, long pairs, long readKeys, WorkSink sink) {
    if (layers > 0) {
      long queries = layers * tokens * model.heads() * model.headDim();
      sink.flops("attn.attention", Products.exact(4, pairs, model.heads(), model.headDim(), layers));
      sink.read("attn.attention",
          Products.exact(2, readKeys, model.kvHeads(), model.headDim(), model.cacheBytes(), layers)
              + activations(queries));
      sink.write("attn.attention", activations(queries));
    }
  }

  private void elementwise(String part, int flops, long elements, WorkSink sink) {
    sink.flops(part, flops * elements);
    sink.read(part, activations(2 * elements));
    sink.write(part, activations(elements));
  }

  /** Added by the matmul that made the other summand, where its result lies. */
  private void residual(long elements, WorkSink sink) {
    sink.flops("residual", elements);
    sink.read("residual", activations(elements));
  }

  private long weights(long elements) {
    return (long) (elements * model.weightBytes());
  }

  private long activations(long elements) {
    return elements * model.activationBytes();
  }
}
