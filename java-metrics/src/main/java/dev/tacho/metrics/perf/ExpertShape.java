package dev.tacho.metrics.perf;

/**
 * The mixture-of-experts layers of a model. If one of the first three sizes is 0 although there are layers, the
 * feed-forward part of the estimate is left out.
 *
 * @param experts routed experts, X
 * @param perToken experts that compute a token, E
 * @param intermediate size of an expert, M
 * @param shared experts that compute every token, S
 * @param layers layers with experts; the others are dense
 */
public record ExpertShape(int experts, int perToken, int intermediate, int shared, int layers) {
  /** A dense model. */
  public static final ExpertShape NONE = new ExpertShape(0, 0, 0, 0, 0);

  /** Checks the sizes. */
  public ExpertShape {
    if (experts < 0 || perToken < 0 || intermediate < 0 || shared < 0 || layers < 0) {
      throw new IllegalArgumentException("experts " + experts + ", per token " + perToken + ", intermediate "
          + intermediate + ", shared " + shared + ", layers " + layers + ": must not be negative");
    }
  }

  /** True if there are layers with experts and too little is known of them. */
  boolean isIncomplete() {
    return layers > 0 && (experts == 0 || perToken == 0 || intermediate == 0);
  }
}
