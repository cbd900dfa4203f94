package dev.tacho.metrics.stats;

import dev.tacho.metrics.event.RequestId;
import org.jspecify.annotations.Nullable;

/** The longest of some times and whose it was, of those whose request is known. One thread. */
public final class Longest {
  private double seconds = Double.NEGATIVE_INFINITY;
  private @Nullable RequestId requestId;

  /** Looks at a time; null for an unknown request, which is passed over. */
  public void observe(double time, @Nullable RequestId request) {
    if (request != null && time > seconds) {
      seconds = time;
      requestId = request;
    }
  }

  /** Looks at what another has kept. */
  public void observe(Longest other) {
    observe(other.seconds, other.requestId);
  }

  /** Forgets. */
  public void clear() {
    seconds = Double.NEGATIVE_INFINITY;
    requestId = null;
  }

  /** The longest time; meaningless without a request. */
  public double seconds() {
    return seconds;
  }

  /** Whose it was; null if there was none. */
  public @Nullable RequestId requestId() {
    return requestId;
  }
}
