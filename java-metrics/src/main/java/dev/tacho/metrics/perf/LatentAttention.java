package dev.tacho.metrics.perf;

import dev.tacho.metrics.event.StepShape;

/** The part of the estimate that is attention with latent keys and values. Immutable. */
final class LatentAttention {
  private final ModelShape model;
  private final LatentShape latent;
  private final long heads;
  private final long layers;

  LatentAttention(ModelShape model, LatentShape latent) {
    this.model = model;
    this.latent = latent;
    this.heads = Math.max(1, model.heads() / model.tensorParallel());
    this.layers = model.layers() / model.pipelineParallel();
  }

  void estimate(StepShape step, WorkSink sink) {
    if (latent.queryRank() > 0) {
      lowRankQueries(step.tokens(), sink);
    } else {
      queries(step.tokens(), sink);
    }
    keysAndValues(step.tokens(), sink);
    scores(step, sink);
    output(step.tokens(), sink);
  }

  private void lowRankQueries(long tokens, WorkSink sink) {
    long hidden = model.hidden();
    long rank = latent.queryRank();
    long dim = latent.queryDim();
    long a = model.activationBytes();
    sink.flops("mla_attn.q_a_proj", Products.exact(2, tokens, hidden, rank, layers));
    sink.flops("mla_attn.q_b_proj", Products.exact(2, tokens, rank, heads, dim, layers));
    sink.read("mla_attn.q_a_input", Products.exact(tokens, hidden, a, layers));
    sink.read("mla_attn.q_a_weight", weights(hidden, rank));
    sink.read("mla_attn.q_b_input", Products.exact(tokens, rank, a, layers));
    sink.read("mla_attn.q_b_weight", weights(rank, heads, dim));
    sink.write("mla_attn.q_a_output", Products.exact(tokens, rank, a, layers));
    sink.write("mla_attn.q_b_output", Products.exact(tokens, heads, dim, a, layers));
  }

  private void queries(long tokens, WorkSink sink) {
    long hidden = model.hidden();
    long dim = latent.queryDim();
    long a = model.activationBytes();
    sink.flops("mla_attn.q_proj", Products.exact(2, tokens, hidden, heads, dim, layers));
    sink.read("mla_attn.q_input", Products.exact(tokens, hidden, a, layers));
    sink.read("mla_attn.q_weight", weights(hidden, heads, dim));
    sink.write("mla_attn.q_output", Products.exact(tokens, heads, dim, a, layers));
  }

  private void keysAndValues(long tokens, WorkSink sink) {
    long hidden = model.hidden();
    long rank = latent.keyValueRank();
    long cached = rank + latent.rotaryDim();
    long expanded = (long) latent.plainDim() + latent.valueDim();
    long a = model.activationBytes();
    sink.flops("mla_attn.kv_a_proj", Products.exact(2, tokens, hidden, cached, layers));
    sink.flops("mla_attn.kv_b_proj", Products.exact(2, tokens, rank, heads, expanded, layers));
    sink.read("mla_attn.kv_a_input", Products.exact(tokens, hidden, a, layers));
    sink.read("mla_attn.kv_a_weight", weights(hidden, cached));
    sink.read("mla_attn.kv_b_input", Products.exact(tokens, rank, a, layers));
    sink.read("mla_attn.kv_b_weight", weights(rank, heads, expanded));
    sink.write("mla_attn.kv_a_output", Products.exact(tokens, cached, a, layers));
    sink.write("mla_attn.kv_b_output", Products.exact(tokens, heads, expanded, a, layers));
    sink.write("mla_attn.kv_cache", Products.exact(tokens, cached, model.cacheBytes(), layers));
  }

  private void scores(StepShape step, WorkSink sink) {
    long dim = latent.queryDim();
    long value = latent.valueDim();
    long a = model.activationBytes();
    sink.flops("mla_attn.attn_qk", Products.exact(2, heads, step.product(), dim, layers));
    sink.flops("mla_attn.attn_av", Products.exact(2, heads, step.product(), value, layers));
    if (step.tokens() > 0) {
      long input = 0;
      if (step.prefillTokens() > 0) {
        input += Products.exact(step.prefillTokens(), heads, dim, a, layers)
            + Products.exact(step.prefillContext(), heads, dim + value, a, layers);
      }
      if (step.decodeTokens() > 0) {
        input += Products.exact(step.decodeTokens(), heads, dim, a, layers) + Products.exact(step.decodeContext(),
            (long) latent.keyValueRank() + latent.rotaryDim(), model.cacheBytes(), layers);
      }
      sink.read("mla_attn.attn_input", input);
    }
  }

  private void output(long tokens, WorkSink sink) {
    long hidden = model.hidden();
    long value = latent.valueDim();
    long a = model.activationBytes();
    sink.flops("mla_attn.out_proj", Products.exact(2, tokens, heads, value, hidden, layers));
    sink.read("mla_attn.out_input", Products.exact(tokens, heads, value, a, layers));
    sink.read("mla_attn.out_weight", weights(heads, value, hidden));
    sink.write("mla_attn.out_output", Products.exact(tokens, hidden, a, layers));
  }

  private long weights(long... sizes) {
    return Products.weights(model.weightBytes(), layers, sizes);
  }
}
