package dev.tacho.metrics.event;

/**
 * Sums over the sequences of a step, from which the step's work can be estimated. Filled by the engine thread and
 * reused from step to step; nothing is allocated.
 *
 * <p>A sequence that is new in the step counts as prefill, and so does a running one that computes more than one token;
 * the others are decodes. Its context is the number of its tokens that are computed after the step.
 */
public final class StepShape {
  private final long window;
  private long prefillTokens;
  private long decodeTokens;
  private long prefillContext;
  private long decodeContext;
  private long product;
  private long prefillContextWindowed;
  private long decodeContextWindowed;
  private long productWindowed;
  private int prefillRequests;

  /** A shape for models without a sliding window. */
  public StepShape() {
    this(0);
  }

  /**
   * A shape for a model with a sliding window.
   *
   * @param window tokens that a windowed layer sees, 0 if there are none
   */
  public StepShape(long window) {
    this.window = window > 0 ? window : Long.MAX_VALUE;
  }

  /** Empties the sums. */
  public void reset() {
    prefillTokens = 0;
    decodeTokens = 0;
    prefillContext = 0;
    decodeContext = 0;
    product = 0;
    prefillContextWindowed = 0;
    decodeContextWindowed = 0;
    productWindowed = 0;
    prefillRequests = 0;
  }

  /**
   * Adds a sequence.
   *
   * @param isNew true if the sequence was not in an earlier step
   * @param scheduledTokens tokens that it computes in this step; nothing is added if 0
   * @param computedTokens tokens computed before the step
   */
  public void add(boolean isNew, int scheduledTokens, long computedTokens) {
    if (scheduledTokens == 0) {
      return;
    }
    long context = computedTokens + scheduledTokens;
    long windowed = Math.min(context, window);
    if (isNew || scheduledTokens > 1) {
      prefillRequests++;
      prefillTokens += scheduledTokens;
      prefillContext += context;
      prefillContextWindowed += windowed;
    } else {
      decodeTokens += scheduledTokens;
      decodeContext += context;
      decodeContextWindowed += windowed;
    }
    product += scheduledTokens * context;
    productWindowed += scheduledTokens * windowed;
  }

  /** Takes the sums of a STEP record. */
  void read(EventReader step) {
    prefillRequests = step.stepInt(EventDescriptor.STEP_PREFILL_REQUESTS);
    prefillTokens = step.stepLong(EventDescriptor.STEP_PREFILL_TOKENS);
    decodeTokens = step.stepLong(EventDescriptor.STEP_DECODE_TOKENS);
    prefillContext = step.stepLong(EventDescriptor.STEP_PREFILL_CONTEXT);
    decodeContext = step.stepLong(EventDescriptor.STEP_DECODE_CONTEXT);
    product = step.stepLong(EventDescriptor.STEP_PRODUCT);
    prefillContextWindowed = step.stepLong(EventDescriptor.STEP_PREFILL_CONTEXT_WINDOWED);
    decodeContextWindowed = step.stepLong(EventDescriptor.STEP_DECODE_CONTEXT_WINDOWED);
    productWindowed = step.stepLong(EventDescriptor.STEP_PRODUCT_WINDOWED);
  }

  /** Sequences that are prefills. */
  public int prefillRequests() {
    return prefillRequests;
  }

  /** Tokens of prefills. */
  public long prefillTokens() {
    return prefillTokens;
  }

  /** Tokens of decodes. */
  public long decodeTokens() {
    return decodeTokens;
  }

  /** Tokens of all sequences. */
  public long tokens() {
    return prefillTokens + decodeTokens;
  }

  /** Contexts of prefills. */
  public long prefillContext() {
    return prefillContext;
  }

  /** Contexts of decodes. */
  public long decodeContext() {
    return decodeContext;
  }

  /** Sum over all sequences of tokens times context. */
  public long product() {
    return product;
  }

  /** Contexts of prefills, each cut to the window. */
  public long prefillContextWindowed() {
    return prefillContextWindowed;
  }

  /** Contexts of decodes, each cut to the window. */
  public long decodeContextWindowed() {
    return decodeContextWindowed;
  }

  /** Sum over all sequences of tokens times context, cut to the window. */
  public long productWindowed() {
    return productWindowed;
  }

  /** Rows of logits: one a prefill and one a decoded token. */
  public long logitTokens() {
    return prefillRequests + decodeTokens;
  }
}
