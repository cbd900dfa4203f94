package dev.tacho.engine;

import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.engine.scheduler.Sequence;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Says in the log why requests wait, when the first in the queue has waited long; again as long as it does, once each
 * such time. Runs on a thread of its own: it asks the engine thread between two steps, which logs nothing itself, and
 * only if requests are there.
 */
final class LongWait implements Runnable {
  private final Duration limit;
  private final CountDownLatch end;
  private final Supplier<@Nullable String> question;
  private final Consumer<String> log;

  /**
   * @param limit what counts as long, above 0
   * @param end opens when the engine has been closed
   * @param question gives what {@link #describe} gave on the engine thread
   * @param log takes a line
   */
  LongWait(Duration limit, CountDownLatch end, Supplier<@Nullable String> question, Consumer<String> log) {
    this.limit = limit;
    this.end = end;
    this.question = question;
    this.log = log;
  }

  @Override
  public void run() {
    try {
      while (!end.await(limit.toNanos(), TimeUnit.NANOSECONDS)) {
        String line = question.get();
        if (line != null) {
          log.accept(line);
        }
      }
    } catch (EngineException e) {
      // The engine has been closed or is dead, and has said so itself.
      return;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * A line about the first in the queue; null if it has not waited that long. Engine thread.
   *
   * @param scheduler of the engine, between two steps
   * @param nanos now
   * @param limit what counts as long
   */
  static @Nullable String describe(Scheduler scheduler, long nanos, Duration limit) {
    Sequence first = scheduler.nextWaiting();
    if (first == null) {
      return null;
    }
    long waited = nanos - first.waitingSinceNanos();
    if (waited < limit.toNanos()) {
      return null;
    }
    int deferred = scheduler.numDeferred();
    return "Running: "
        + scheduler.numRunning()
        + ", Waiting: "
        + (scheduler.numWaiting() + deferred)
        + (deferred == 0 ? "" : " (" + deferred + " deferred)")
        + ". Request "
        + first.requestId()
        + ", the first in the queue, has waited "
        + TimeUnit.NANOSECONDS.toSeconds(waited)
        + " s: "
        + RequestExplainer.whyWaiting(scheduler, first, 1);
  }
}
