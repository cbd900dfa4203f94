package dev.tacho.metrics.event;

/** What of a step ran as a captured graph. The names are those that log lines show. */
public enum GraphMode {
  /** Nothing: no graph was captured for its size. */
  NONE(0),
  /** The parts between attention calls. */
  PIECEWISE(1),
  /** All of it. */
  FULL(2);

  private static final GraphMode[] BY_ID = values();

  private final int id;

  GraphMode(int id) {
    this.id = id;
  }

  /** The stable number in event records. */
  public int id() {
    return id;
  }

  /** The mode with this number. */
  public static GraphMode of(int id) {
    if (id < 0 || id >= BY_ID.length) {
      throw new IllegalArgumentException("graph mode " + id + " is not in [0, " + BY_ID.length + ")");
    }
    return BY_ID[id];
  }
}
