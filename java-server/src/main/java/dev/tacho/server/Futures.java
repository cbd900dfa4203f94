package dev.tacho.server;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/** Waiting for what another thread computes. */
final class Futures {
  private Futures() {}

  /** The future's value, or the very exception that it failed with. */
  static <T extends @Nullable Object> T join(CompletableFuture<T> future) {
    try {
      return future.join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw e;
    }
  }
}
