package dev.tacho.engine;

/** What becomes of the requests of an engine that is put to sleep. Requests that come later wait in any case. */
public enum SleepMode {
  /** All end at once, with finish reason ABORT and stop reason {@code sleep}. */
  ABORT,
  /** Those that run go on to their end; the others wait. */
  WAIT,
  /** All wait; those that ran are computed again from the tokens that they have, if the KV cache is given up. */
  KEEP
}
