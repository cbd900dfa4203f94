package dev.tacho.engine;

import dev.tacho.engine.scheduler.Scheduler;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * What a thread wants to know of the engine thread, or have done by it, between two steps. The asking thread waits; no
 * foreign code depends on the answer.
 *
 * @param <T> the answer
 */
final class EngineQuestion<T> {
  /** Finds the answer, on the engine thread. */
  interface Answer<T> {
    T find(Scheduler scheduler, long nanos);
  }

  private final Answer<T> answer;
  private final CompletableFuture<T> found = new CompletableFuture<>();

  EngineQuestion(Answer<T> answer) {
    this.answer = answer;
  }

  /** Finds the answer. Engine thread. */
  void answer(Scheduler scheduler, long nanos) {
    try {
      found.complete(answer.find(scheduler, nanos));
    } catch (RuntimeException e) {
      found.completeExceptionally(e);
    }
  }

  /** There will be no answer. */
  void refuse(EngineException cause) {
    found.completeExceptionally(cause);
  }

  /** Waits for the answer: at most for the step under way. */
  T await() {
    try {
      return found.join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw e;
    }
  }
}
