package dev.tacho.metrics.stats;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** What a connector that offloads keys and values did since the snapshot before, and its levels. One thread. */
public final class OffloadStats {
  private static final OffloadSeries[] SERIES = OffloadSeries.values();

  private final @Nullable Child[][] children = new Child[SERIES.length][];

  /**
   * Takes a report.
   *
   * @param series what of
   * @param child index of the tier times the number of the series' values, plus the index of the value
   * @param value an amount to add, an observation or a level, as the series' kind says
   * @throws IllegalArgumentException if an amount or the child is negative, or the value is not a number
   */
  public void report(OffloadSeries series, int child, double value) {
    if (child < 0 || Double.isNaN(value) || (value < 0 && series.kind() == OffloadSeries.Kind.COUNT)) {
      throw new IllegalArgumentException(series + " of child " + child + ": " + value + " must not be negative");
    }
    Child of = child(series, child);
    of.touched = true;
    switch (series.kind()) {
      case COUNT -> of.value += value;
      case LEVEL -> of.value = value;
      case SAMPLE -> of.samples.add(value);
    }
  }

  /** Takes a transfer from host memory to the device. */
  public void loaded(long bytes, double seconds) {
    report(OffloadSeries.LOAD_BYTES, 0, (double) bytes);
    report(OffloadSeries.LOAD_TIME, 0, seconds);
    report(OffloadSeries.LOAD_SIZE, 0, (double) bytes);
    transferred(0, (double) bytes, seconds);
  }

  /** Takes a transfer from the device to host memory. */
  public void stored(long bytes, double seconds) {
    report(OffloadSeries.STORE_BYTES, 0, (double) bytes);
    report(OffloadSeries.STORE_TIME, 0, seconds);
    report(OffloadSeries.STORE_SIZE, 0, (double) bytes);
    transferred(1, (double) bytes, seconds);
  }

  /** Adds everything of another; its levels replace. */
  public void add(OffloadStats other) {
    for (OffloadSeries series : SERIES) {
      for (int i = 0; i < other.children(series); i++) {
        if (other.isTouched(series, i)) {
          Child from = other.child(series, i);
          Child to = child(series, i);
          to.touched = true;
          to.value = series.kind() == OffloadSeries.Kind.COUNT ? to.value + from.value : from.value;
          to.samples.add(from.samples);
        }
      }
    }
  }

  /** Forgets everything. */
  public void clear() {
    for (@Nullable Child[] some : children) {
      if (some != null) {
        for (Child child : some) {
          if (child != null) {
            child.touched = false;
            child.value = 0;
            child.samples.clear();
          }
        }
      }
    }
  }

  /** Children that a series may have reports of. */
  public int children(OffloadSeries series) {
    @Nullable Child[] some = children[series.ordinal()];
    return some == null ? 0 : some.length;
  }

  /** True if a child was reported. */
  public boolean isTouched(OffloadSeries series, int child) {
    @Nullable Child[] some = children[series.ordinal()];
    if (some == null || child >= some.length) {
      return false;
    }
    Child found = some[child];
    return found != null && found.touched;
  }

  /** Sum of a count, or the last level; 0 without a report. */
  public double value(OffloadSeries series, int child) {
    return isTouched(series, child) ? child(series, child).value : 0;
  }

  /** Observations of a series. */
  public Samples samples(OffloadSeries series, int child) {
    return child(series, child).samples;
  }

  private void transferred(int direction, double bytes, double seconds) {
    report(OffloadSeries.TOTAL_BYTES, direction, bytes);
    report(OffloadSeries.TOTAL_TIME, direction, seconds);
    report(OffloadSeries.SIZE, direction, bytes);
  }

  private Child child(OffloadSeries series, int index) {
    @Nullable Child[] some = children[series.ordinal()];
    if (some == null) {
      some = new Child[index + 1];
    } else if (index >= some.length) {
      some = Arrays.copyOf(some, index + 1);
    }
    children[series.ordinal()] = some;
    Child found = some[index];
    if (found == null) {
      found = new Child();
      some[index] = found;
    }
    return found;
  }

  /** One child's reports. */
  private static final class Child {
    boolean touched;
    double value;
    final Samples samples = new Samples();
  }
}
