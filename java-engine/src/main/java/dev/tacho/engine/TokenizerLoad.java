package dev.tacho.engine;

import dev.tacho.engine.format.GgufFile;
import dev.tacho.engine.token.Tokenizer;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/**
 * Builds the tokenizer of a model on a thread of its own, while kernels are chosen and weights are packed: unpacking
 * and loading its native library would hold up a start. Used by the thread that loads, which closes it before the file.
 */
final class TokenizerLoad implements AutoCloseable {
  private final FutureTask<Tokenizer> task;
  private boolean taken;

  /**
   * Starts at once.
   *
   * @param file must stay open until this is closed
   */
  TokenizerLoad(GgufFile file) {
    task = new FutureTask<>(() -> Tokenizer.of(file));
    Thread.ofPlatform().name("tacho-tokenizer").daemon().start(task);
  }

  /**
   * Waits for the tokenizer, which is the caller's from then on.
   *
   * @throws EngineException as {@link Tokenizer#of} does
   */
  Tokenizer take() {
    Tokenizer tokenizer = await();
    taken = true;
    return tokenizer;
  }

  /** Waits until the file is read no longer; closes the tokenizer if nobody took it. */
  @Override
  public void close() {
    if (!taken) {
      try {
        await().close();
      } catch (EngineException unheard) {
        // Whoever closes without the tokenizer has failed for another reason, or knows of this one.
      }
    }
  }

  private Tokenizer await() {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return task.get();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } catch (ExecutionException e) {
      switch (e.getCause()) {
        case RuntimeException failure -> throw failure;
        case Error failure -> throw failure;
        case null, default -> throw new IllegalStateException(e);
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
