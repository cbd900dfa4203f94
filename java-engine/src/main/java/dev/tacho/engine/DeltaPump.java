package dev.tacho.engine;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * Carries the deltas of one request to its listener: a virtual thread waits for each and has the executor call the
 * listener, one call at a time. What the listener or the executor throws ends this request and no other.
 */
final class DeltaPump implements Runnable {
  private final Generation generation;
  private final Executor executor;
  private final Consumer<TokenDelta> listener;

  private DeltaPump(Generation generation, Executor executor, Consumer<TokenDelta> listener) {
    this.generation = generation;
    this.executor = executor;
    this.listener = listener;
  }

  static void start(Generation generation, Executor executor, Consumer<TokenDelta> listener) {
    Thread.ofVirtual()
        .name("tacho-listener-" + generation.requestId())
        .start(new DeltaPump(generation, executor, listener));
  }

  @Override
  public void run() {
    DeltaIterator deltas = new DeltaIterator(generation);
    while (hasNext(deltas)) {
      TokenDelta delta = deltas.next();
      try {
        CompletableFuture.runAsync(() -> listener.accept(delta), executor).join();
      } catch (CompletionException e) {
        generation.listenerFailed(e.getCause() == null ? e : e.getCause());
        return;
      } catch (RuntimeException e) {
        generation.listenerFailed(e);
        return;
      }
    }
  }

  /** The failure of the request itself is the completion's to report. */
  private static boolean hasNext(DeltaIterator deltas) {
    try {
      return deltas.hasNext();
    } catch (EngineException e) {
      return false;
    }
  }
}
