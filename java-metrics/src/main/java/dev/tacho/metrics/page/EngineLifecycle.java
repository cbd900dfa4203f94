package dev.tacho.metrics.page;

import java.util.Locale;

/** The states of an engine, as the one-hot gauge {@code tacho:engine_state} shows them. */
public enum EngineLifecycle {
  /** Loading; requests are not served yet. */
  STARTING,
  /** Serving. */
  RUNNING,
  /** Asleep by request. */
  SLEEPING,
  /** Finishing what it has, refusing new requests. */
  DRAINING,
  /** Serving, with something lost: a failed step, a dropped event. */
  DEGRADED,
  /** Unable to go on. */
  DEAD,
  /** Closed. */
  CLOSED;

  private static final EngineLifecycle[] ALL = values();

  /** The value of the label {@code state}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** The state with this number, CLOSED for any other number. */
  public static EngineLifecycle of(long number) {
    return number >= 0 && number < ALL.length ? ALL[(int) number] : CLOSED;
  }
}
