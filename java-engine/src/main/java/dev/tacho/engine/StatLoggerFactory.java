package dev.tacho.engine;

import dev.tacho.metrics.logger.StatLogger;

/**
 * Makes the loggers that an application plugs in: one for each engine, which gets that engine's statistics on a thread
 * of its own and is closed with the engine.
 */
@FunctionalInterface
public interface StatLoggerFactory {
  /**
   * A new logger.
   *
   * @param engineIndex the engine's number, from 0
   */
  StatLogger create(int engineIndex);
}
