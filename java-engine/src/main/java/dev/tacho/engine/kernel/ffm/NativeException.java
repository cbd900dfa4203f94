package dev.tacho.engine.kernel.ffm;

/** A native kernel failed for a reason that no check of its arguments foresaw. */
public final class NativeException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int status;

  NativeException(String function, int status, String meaning, String detail) {
    super(function + ": " + meaning + " (status " + status + ")" + (detail.isEmpty() ? "" : ": " + detail));
    this.status = status;
  }

  /** The status as in {@code tacho.h}. */
  public int status() {
    return status;
  }
}
