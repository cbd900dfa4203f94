package dev.tacho.metrics.perf;

/**
 * Multi-head latent attention: keys and values are cached as one low-rank vector a token.
 *
 * @param queryRank rank of the queries, 0 if they are projected directly
 * @param keyValueRank rank of keys and values, c
 * @param plainDim elements of a head without position
 * @param rotaryDim elements of a head with rotary position, r
 * @param valueDim elements of a value, v
 */
public record LatentShape(int queryRank, int keyValueRank, int plainDim, int rotaryDim, int valueDim) {
  /** Checks the sizes. */
  public LatentShape {
    if (queryRank < 0 || keyValueRank <= 0 || plainDim < 0 || rotaryDim < 0 || plainDim + rotaryDim <= 0
        || valueDim <= 0) {
      throw new IllegalArgumentException("latent attention of ranks " + queryRank + " and " + keyValueRank
          + ", dimensions " + plainDim + ", " + rotaryDim + " and " + valueDim + ": must be positive");
    }
  }

  /** Elements of a query or key of a head. */
  int queryDim() {
    return plainDim + rotaryDim;
  }
}
