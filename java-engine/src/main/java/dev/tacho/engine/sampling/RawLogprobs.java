package dev.tacho.engine.sampling;

/** Computes log-probabilities from a row of logits to which nothing has been done. */
final class RawLogprobs {
  private RawLogprobs() {}

  /**
   * @param row logits without NaN
   * @param id the chosen token
   * @param count how many of the most probable tokens to report
   */
  static TokenLogprobs of(float[] row, int id, int count) {
    int kept = Math.min(count, row.length);
    int[] topIds = new int[kept];
    float[] top = new float[kept];
    float max = Float.NEGATIVE_INFINITY;
    int rank = 1;
    int size = 0;
    for (int i = 0; i < row.length; i++) {
      float logit = row[i];
      max = Math.max(max, logit);
      if (logit > row[id] || (logit == row[id] && i < id)) {
        rank++;
      }
      if (kept > 0 && (size < kept || logit > top[size - 1])) {
        size = Math.min(size + 1, kept);
        insert(i, logit, topIds, top, size - 1);
      }
    }
    double sum = 0;
    for (float logit : row) {
      sum += Math.exp(belowMax(logit, max));
    }
    double logSum = Math.log(sum);
    for (int i = 0; i < kept; i++) {
      top[i] = (float) (belowMax(top[i], max) - logSum);
    }
    return new TokenLogprobs((float) (belowMax(row[id], max) - logSum), rank, topIds, top);
  }

  /** Distance from the maximum, also where both are infinite. */
  private static double belowMax(float logit, float max) {
    return logit == max ? 0 : (double) logit - max;
  }

  private static void insert(int id, float logit, int[] topIds, float[] top, int last) {
    int at = last;
    while (at > 0 && top[at - 1] < logit) {
      topIds[at] = topIds[at - 1];
      top[at] = top[at - 1];
      at--;
    }
    topIds[at] = id;
    top[at] = logit;
  }
}
