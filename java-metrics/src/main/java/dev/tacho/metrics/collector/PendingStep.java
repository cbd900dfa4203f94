package dev.tacho.metrics.collector;

import java.util.Arrays;

/** The outputs of a step that waits for its pick-up: its records as they came, without their header. One thread. */
final class PendingStep {
  private long step;
  private long batchNanos;
  private int outputs;
  private long[] words = new long[64];
  private int size;

  void open(long newStep, long newBatchNanos, int newOutputs) {
    step = newStep;
    batchNanos = newBatchNanos;
    outputs = newOutputs;
    size = 0;
  }

  void add(long word) {
    if (size == words.length) {
      words = Arrays.copyOf(words, size * 2);
    }
    words[size++] = word;
  }

  long step() {
    return step;
  }

  long batchNanos() {
    return batchNanos;
  }

  int outputs() {
    return outputs;
  }

  int size() {
    return size;
  }

  long word(int index) {
    return words[index];
  }
}
