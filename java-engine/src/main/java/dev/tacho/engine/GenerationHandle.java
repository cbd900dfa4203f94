package dev.tacho.engine;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * A request under way. Any thread may call any method; none of them makes the engine wait.
 *
 * <p>The deltas have one reader: either {@link #deltas()} or {@link #onDelta}, once. Without a reader they are gathered
 * for {@link #completion()} alone. A reader that leaves deltas lying for 30 seconds, or more than 1 MiB of them, has
 * its request aborted (stop reason {@code slow_reader}); what was generated until then can still be read.
 */
public final class GenerationHandle {
  private final Generation generation;

  GenerationHandle(Generation generation) {
    this.generation = generation;
  }

  /** The request's id. */
  public String requestId() {
    return generation.requestId();
  }

  /**
   * Done as soon as the prompt is tokenised and the engine has accepted the request: the prompt's token ids. Fails as
   * {@link #completion()} does if it was refused, e.g. with a {@link PromptTooLongException}.
   */
  public CompletableFuture<List<Integer>> accepted() {
    return generation.accepted().copy();
  }

  /**
   * The deltas as they come, until the last completion has ended. {@code next} and {@code hasNext} wait for them: made
   * for a virtual thread. They throw the {@link EngineException} of a request that failed, behind its last delta.
   *
   * @throws IllegalStateException if the deltas have a reader already
   */
  public Iterable<TokenDelta> deltas() {
    generation.mailbox().attach(System.nanoTime());
    DeltaIterator iterator = new DeltaIterator(generation);
    return () -> iterator;
  }

  /**
   * Calls the listener with each delta on a virtual thread of the request; see {@link #onDelta(Executor, Consumer)}.
   */
  public void onDelta(Consumer<TokenDelta> listener) {
    onDelta(Runnable::run, listener);
  }

  /**
   * Has the executor call the listener with each delta, one after the other. A listener that throws, and an executor
   * that refuses, end this request: {@link #completion()} fails with a {@link RequestFailedException}.
   *
   * @throws IllegalStateException if the deltas have a reader already
   */
  public void onDelta(Executor executor, Consumer<TokenDelta> listener) {
    generation.mailbox().attach(System.nanoTime());
    DeltaPump.start(generation, executor, listener);
  }

  /**
   * Done when the last of the request's completions has ended. A cancelled or aborted request completes with what it
   * has, and finish reason ABORT. Fails with an {@link EngineException}: {@link PromptTooLongException}, {@link
   * InvalidRequestException} and {@link OverloadedException} if it was refused, {@link RequestFailedException}, {@link
   * EngineDeadException}, {@link EngineClosedException}. Dependent actions run on a virtual thread unless they name an
   * executor. Cancelling the future does not cancel the request; {@link #cancel()} does.
   */
  public CompletableFuture<Completion> completion() {
    return generation.completion().copy();
  }

  /** Ends the request within one step; nothing happens if it has ended already. */
  public void cancel() {
    generation.cancel();
  }
}
