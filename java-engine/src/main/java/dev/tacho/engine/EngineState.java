package dev.tacho.engine;

import java.util.Locale;

/** What an engine is doing; {@link #label()} is the value of the metric label {@code state}. */
public enum EngineState {
  /** It is loading the model. */
  STARTING,
  /** It serves. */
  RUNNING,
  /** Its memory has been given up until it is woken; requests wait. */
  SLEEPING,
  /** It finishes what it has and accepts nothing new. */
  DRAINING,
  /** It serves, but something of it has failed and was restarted, or events were lost. */
  DEGRADED,
  /** It has failed for good; every request gets {@link EngineDeadException}. */
  DEAD,
  /** It was closed; every request gets {@link EngineClosedException}. */
  CLOSED;

  /** The state in lower case. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** True if a request is accepted in this state. */
  public boolean accepts() {
    return this == RUNNING || this == DEGRADED || this == SLEEPING;
  }
}
