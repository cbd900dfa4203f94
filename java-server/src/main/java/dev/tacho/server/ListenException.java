package dev.tacho.server;

/** An address that cannot be listened on. */
public final class ListenException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ListenException(String host, int port, Throwable cause) {
    super(
        "cannot listen on " + host + " port " + port + ": " + cause.getMessage()
            + (port == 0 ? "" : "; choose another one with --port, 0 takes any that is free"),
        cause);
  }

  ListenException(String host, Throwable cause) {
    super("cannot listen on " + host + ": --host names no address of this machine", cause);
  }
}
