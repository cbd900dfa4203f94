package dev.tacho.engine.kernel.ffm;

/** The native library cannot be had; the reason lists every path that was tried and why it failed. */
final class LibraryUnavailableException extends Exception {
  private static final long serialVersionUID = 1L;

  private final String reason;

  LibraryUnavailableException(String reason) {
    super(reason);
    this.reason = reason;
  }

  String reason() {
    return reason;
  }
}
