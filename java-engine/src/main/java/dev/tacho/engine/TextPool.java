package dev.tacho.engine;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * The few platform threads of this JVM that tokenize. A tokenizer runs native code, and a native frame pins a virtual
 * thread's carrier: two long prompts would hold up every connection of a small machine. Work waits in line; idle
 * threads end.
 */
final class TextPool {
  private static final int MAX_THREADS = 4;
  private static final long IDLE_SECONDS = 10;
  private static final ThreadPoolExecutor EXECUTOR = newExecutor();

  private TextPool() {}

  private static ThreadPoolExecutor newExecutor() {
    int threads = Math.min(MAX_THREADS, Runtime.getRuntime().availableProcessors());
    ThreadPoolExecutor executor =
        new ThreadPoolExecutor(
            threads,
            threads,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            Thread.ofPlatform().daemon().name("tacho-text-", 0).factory());
    executor.allowCoreThreadTimeOut(true);
    return executor;
  }

  /** Has a thread of the pool do something. */
  static void execute(Runnable task) {
    EXECUTOR.execute(task);
  }

  /** Has a thread of the pool find something out, and waits for it. */
  static <T> T call(Supplier<T> task) {
    try {
      return CompletableFuture.supplyAsync(task, EXECUTOR).join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw e;
    }
  }
}
