package dev.tacho.engine;

/** Something valid that this build, CPU or engine does not have: a tensor type, an architecture, a provider. */
public final class UnsupportedException extends EngineException {
  private static final long serialVersionUID = 1L;

  private final String what;
  private final String supported;

  /**
   * @param what the thing asked for, e.g. {@code "tensor type Q5_K of blk.0.attn_q.weight"}
   * @param supported what could be had instead, or why it cannot be had
   */
  public UnsupportedException(String what, String supported) {
    super(what + " is not supported: " + supported);
    this.what = what;
    this.supported = supported;
  }

  /** The thing asked for. */
  public String what() {
    return what;
  }

  /** What could be had instead, or why it cannot be had. */
  public String supported() {
    return supported;
  }
}
