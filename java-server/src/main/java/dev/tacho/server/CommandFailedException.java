package dev.tacho.server;

/** A command that could not do its work; the message is all that the user needs. */
final class CommandFailedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  CommandFailedException(String message) {
    super(message);
  }
}
