package dev.tacho.metrics.perf;

import dev.tacho.metrics.event.StepShape;

/**
 * The part of the estimate that is the feed-forward layers: dense ones, routed experts, perfectly balanced, and shared
 * experts. Immutable.
 */
final class FeedForward {
  private final ModelShape model;
  private final ExpertShape experts;
  private final long expertDevices;
  private final long denseLayers;
  private final long expertLayers;
  private final long intermediate;
  private final long expertIntermediate;
  private final long expertsHere;

  FeedForward(ModelShape model) {
    this.model = model;
    this.experts = model.experts();
    int devices = model.dataParallel() * model.tensorParallel();
    int sliced = model.expertParallel() ? 1 : devices;
    this.expertDevices = model.expertParallel() ? devices : 1;
    this.denseLayers = ((long) model.layers() - experts.layers()) / model.pipelineParallel();
    this.expertLayers = experts.layers() / model.pipelineParallel();
    this.intermediate = model.intermediate() / sliced;
    this.expertIntermediate = experts.intermediate() / sliced;
    this.expertsHere = experts.experts() / expertDevices;
  }

  void estimate(StepShape step, WorkSink sink) {
    if (experts.isIncomplete()) {
      return;
    }
    if (denseLayers > 0) {
      dense(step.tokens(), sink);
    }
    if (expertLayers > 0) {
      routed(Products.exact(step.tokens(), experts.perToken()) / expertDevices, sink);
      if (experts.shared() > 0) {
        shared(step.tokens(), sink);
      }
    }
  }

  private void dense(long tokens, WorkSink sink) {
    long hidden = model.hidden();
    long a = model.activationBytes();
    sink.flops("ffn.dense_ffn", Products.exact(6, hidden, intermediate, tokens, denseLayers));

    sink.read("ffn.dense_up_gate_input", Products.exact(tokens, hidden, a, denseLayers));
    sink.read("ffn.dense_up_gate_weights", weights(denseLayers, 2, hidden, intermediate));
    sink.read("ffn.dense_silu_input", Products.exact(2, tokens, intermediate, a, denseLayers));
    sink.read("ffn.dense_down_input", Products.exact(tokens, intermediate, a, denseLayers));
    sink.read("ffn.dense_down_weights", weights(denseLayers, hidden, intermediate));

    sink.write("ffn.dense_up_gate_output", Products.exact(2, tokens, intermediate, a, denseLayers));
    sink.write("ffn.dense_silu_output", Products.exact(tokens, intermediate, a, denseLayers));
    sink.write("ffn.dense_down_output", Products.exact(tokens, hidden, a, denseLayers));
  }

  private void routed(long activations, WorkSink sink) {
    long hidden = model.hidden();
    long a = model.activationBytes();
    long size = expertIntermediate;
    long active = Math.min(activations, expertsHere);
    sink.flops("ffn.routed_ffn", Products.exact(6, hidden, size, activations, expertLayers));

    sink.read("ffn.routed_up_gate_input", Products.exact(activations, hidden, a, expertLayers));
    sink.read("ffn.routed_up_gate_weights", weights(expertLayers, 2, hidden, size, active));
    sink.read("ffn.routed_silu_input", Products.exact(2, activations, size, a, expertLayers));
    sink.read("ffn.routed_down_input", Products.exact(activations, size, a, expertLayers));
    sink.read("ffn.routed_down_weights", weights(expertLayers, hidden, size, active));

    sink.write("ffn.routed_up_gate_output", Products.exact(2, activations, size, a, expertLayers));
    sink.write("ffn.routed_silu_output", Products.exact(activations, size, a, expertLayers));
    sink.write("ffn.routed_down_output", Products.exact(activations, hidden, a, expertLayers));
  }

  private void shared(long tokens, WorkSink sink) {
    long hidden = model.hidden();
    long a = model.activationBytes();
    long size = expertIntermediate;
    long count = experts.shared();
    sink.flops("ffn.shared_ffn", Products.exact(6, hidden, size, count, tokens, expertLayers));

    sink.read("ffn.shared_up_gate_input", Products.exact(tokens, hidden, a, expertLayers));
    sink.read("ffn.shared_up_gate_weights", weights(expertLayers, 2, hidden, size, count));
    sink.read("ffn.shared_silu_input", Products.exact(2, tokens, size, count, a, expertLayers));
    // vLLM counts this operand for one shared expert, however many there are.
    sink.read("ffn.shared_down_input", Products.exact(tokens, size, a, expertLayers));
    sink.read("ffn.shared_down_weights", weights(expertLayers, hidden, size, count));

    sink.write("ffn.shared_up_gate_output", Products.exact(2, tokens, count, size, a, expertLayers));
    sink.write("ffn.shared_silu_output", Products.exact(tokens, count, size, a, expertLayers));
    sink.write("ffn.shared_down_output", Products.exact(tokens, count, hidden, a, expertLayers));
  }

  private long weights(long layers, long... sizes) {
    return Products.weights(model.weightBytes(), layers, sizes);
  }
}
