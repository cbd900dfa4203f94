package dev.tacho.engine.sampling;

/**
 * The tokens that may be drawn from a row of logits, with their weights: what temperature, min_p, top_k and top_p, in
 * this order, leave of it. Owned by a {@link Sampler}; every selection overwrites the last.
 */
final class Candidates {
  private final int[] ids;
  private final double[] weights;
  private final float[] scratch;
  private int size;
  private double total;

  Candidates(int vocabSize) {
    ids = new int[vocabSize];
    weights = new double[vocabSize];
    scratch = new float[vocabSize];
  }

  /**
   * Selects.
   *
   * @param row logits without NaN
   * @param best id of the largest
   * @param temperature above 0
   * @param minP share of the largest probability below which a token is dropped; 0 drops none
   * @param topK tokens kept, and all that equal the last of them; 0 or less keeps all
   * @param topP the smallest set with at least this probability is kept; 1 keeps all
   */
  void select(float[] row, int best, float temperature, float minP, int topK, float topP) {
    collect(row, row[best], temperature, minP);
    if (size == 0) {
      // Every logit is minus infinity: there is nothing to choose from.
      ids[0] = best;
      weights[0] = 1;
      size = 1;
    }
    if (topK > 0 && topK < size) {
      keepTopK(row, topK);
    }
    total = sum(size);
    if (topP < 1) {
      keepTopP(topP);
    }
  }

  /** Tokens left. */
  int size() {
    return size;
  }

  int id(int i) {
    return ids[i];
  }

  double probability(int i) {
    return weights[i] / total;
  }

  /** The token at a point of the cumulative distribution. */
  int at(double point) {
    double left = point * total;
    int last = 0;
    for (int i = 0; i < size; i++) {
      left -= weights[i];
      if (left < 0) {
        return ids[i];
      }
      if (weights[i] > 0) {
        last = i;
      }
    }
    // Only rounding leads here.
    return ids[last];
  }

  private void collect(float[] row, float max, float temperature, float minP) {
    size = 0;
    for (int id = 0; id < row.length; id++) {
      float logit = row[id];
      // An infinite maximum has no finite rival.
      double weight = logit == max ? 1 : Math.exp(((double) logit - max) / temperature);
      if (logit != Float.NEGATIVE_INFINITY && weight >= minP) {
        ids[size] = id;
        weights[size++] = weight;
      }
    }
  }

  private double sum(int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
      sum += weights[i];
    }
    return sum;
  }

  private void keepTopK(float[] row, int topK) {
    for (int i = 0; i < size; i++) {
      scratch[i] = row[ids[i]];
    }
    float least = Selection.largest(scratch, size, topK);
    int kept = 0;
    for (int i = 0; i < size; i++) {
      if (row[ids[i]] >= least) {
        ids[kept] = ids[i];
        weights[kept++] = weights[i];
      }
    }
    size = kept;
  }

  /**
   * Keeps the most probable tokens until their sum reaches {@code topP} of the total. A heap yields them in order, so
   * that a peaked distribution costs one pass. Of equals at the cut the lower ids are dropped.
   */
  private void keepTopP(float topP) {
    for (int i = size / 2 - 1; i >= 0; i--) {
      siftDown(i, size);
    }
    double before = 0;
    int heapSize = size;
    while (heapSize > 0 && before < topP * total) {
      before += weights[0];
      heapSize--;
      swap(0, heapSize);
      siftDown(0, heapSize);
    }
    int kept = size - heapSize;
    System.arraycopy(ids, heapSize, ids, 0, kept);
    System.arraycopy(weights, heapSize, weights, 0, kept);
    size = kept;
    total = sum(size);
  }

  private void siftDown(int from, int heapSize) {
    int at = from;
    while (true) {
      int child = 2 * at + 1;
      if (child >= heapSize) {
        return;
      }
      if (child + 1 < heapSize && precedes(child + 1, child)) {
        child++;
      }
      if (!precedes(child, at)) {
        return;
      }
      swap(at, child);
      at = child;
    }
  }

  private boolean precedes(int a, int b) {
    return weights[a] > weights[b] || (weights[a] == weights[b] && ids[a] > ids[b]);
  }

  private void swap(int a, int b) {
    int id = ids[a];
    ids[a] = ids[b];
    ids[b] = id;
    double weight = weights[a];
    weights[a] = weights[b];
    weights[b] = weight;
  }
}
