package dev.tacho.metrics.event;

import java.lang.foreign.MemorySegment;

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

  /** True if one decoded token is all there is, and no window cuts its context. */
  boolean isOneDecode() {
    return decodeTokens == 1 && parts() == 0;
  }

  /** Which parts a STEP record of these sums has: bits of its argument. */
  int parts() {
    boolean cut = productWindowed != product;
    return (prefillRequests > 0 ? EventDescriptor.STEP_HAS_PREFILLS : 0) | (cut ? EventDescriptor.STEP_HAS_WINDOW : 0);
  }

  /** Writes the sums into a STEP record. */
  void write(MemorySegment memory, long at, int parts) {
    memory.set(EventDescriptor.LONG, at + EventDescriptor.STEP_DECODE_TOKENS, decodeTokens);
    memory.set(EventDescriptor.LONG, at + EventDescriptor.STEP_DECODE_CONTEXT, decodeContext);
    if (parts != 0) {
      long next = at + EventDescriptor.STEP_BYTES;
      if ((parts & EventDescriptor.STEP_HAS_PREFILLS) != 0) {
        memory.set(EventDescriptor.LONG, next, prefillRequests);
        memory.set(EventDescriptor.LONG, next + 8, prefillTokens);
        memory.set(EventDescriptor.LONG, next + 16, prefillContext);
        memory.set(EventDescriptor.LONG, next + 24, product);
        next += EventDescriptor.STEP_PREFILL_BYTES;
      }
      if ((parts & EventDescriptor.STEP_HAS_WINDOW) != 0) {
        memory.set(EventDescriptor.LONG, next, prefillContextWindowed);
        memory.set(EventDescriptor.LONG, next + 8, decodeContextWindowed);
        memory.set(EventDescriptor.LONG, next + 16, productWindowed);
      }
    }
  }

  /** Takes the sums of a STEP_OF_ONE record. */
  void readOne(long context) {
    reset();
    decodeTokens = 1;
    decodeContext = context;
    decodeContextWindowed = context;
    product = context;
    productWindowed = context;
  }

  /** Takes the sums of a STEP record. */
  void read(EventReader step) {
    int parts = step.argument();
    decodeTokens = step.stepLong(EventDescriptor.STEP_DECODE_TOKENS);
    decodeContext = step.stepLong(EventDescriptor.STEP_DECODE_CONTEXT);
    int next = EventDescriptor.STEP_BYTES;
    if ((parts & EventDescriptor.STEP_HAS_PREFILLS) != 0) {
      prefillRequests = (int) step.stepLong(next);
      prefillTokens = step.stepLong(next + 8);
      prefillContext = step.stepLong(next + 16);
      product = step.stepLong(next + 24);
      next += EventDescriptor.STEP_PREFILL_BYTES;
    } else {
      prefillRequests = 0;
      prefillTokens = 0;
      prefillContext = 0;
      product = decodeContext;
    }
    if ((parts & EventDescriptor.STEP_HAS_WINDOW) != 0) {
      prefillContextWindowed = step.stepLong(next);
      decodeContextWindowed = step.stepLong(next + 8);
      productWindowed = step.stepLong(next + 16);
    } else {
      prefillContextWindowed = prefillContext;
      decodeContextWindowed = decodeContext;
      productWindowed = product;
    }
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
