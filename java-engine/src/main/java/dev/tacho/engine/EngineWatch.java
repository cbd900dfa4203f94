package dev.tacho.engine;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Logs what an engine answers to a question that is put again and again. Runs on a thread of its own, since the engine
 * thread logs nothing itself.
 */
final class EngineWatch implements Runnable {
  private final Duration look;
  private final Duration rest;
  private final CountDownLatch end;
  private final Supplier<@Nullable String> question;
  private final Consumer<String> log;

  /**
   * @param look time before a question, above 0
   * @param rest time before the question that follows a line, above 0
   * @param end opens when the engine has been closed
   * @param question gives a line, or null if there is nothing to say
   * @param log takes a line
   */
  EngineWatch(
      Duration look, Duration rest, CountDownLatch end, Supplier<@Nullable String> question, Consumer<String> log) {
    this.look = look;
    this.rest = rest;
    this.end = end;
    this.question = question;
    this.log = log;
  }

  @Override
  public void run() {
    Duration pause = look;
    try {
      while (!end.await(pause.toNanos(), TimeUnit.NANOSECONDS)) {
        String line = question.get();
        if (line != null) {
          log.accept(line);
        }
        pause = line == null ? look : rest;
      }
    } catch (EngineException e) {
      // The engine has been closed or is dead, and has said so itself.
      return;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
