package dev.tacho.metrics.page;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The values of all engines of a registry at one moment, typed. Immutable.
 *
 * @param values every value, in the order of the exposition
 */
public record MetricsSnapshot(List<Value> values) {
  /** Copies the list. */
  public MetricsSnapshot {
    values = List.copyOf(values);
  }

  /** A value with its name and labels. */
  public sealed interface Value permits Gauge, Counter, Histogram {
    /** Name of the family, a counter's without {@code _total}. */
    String name();

    /** Labels in the order of registration. */
    Map<String, String> labels();
  }

  /**
   * A number that goes up and down.
   *
   * @param name name of the family
   * @param labels labels
   * @param value the number
   */
  public record Gauge(String name, Map<String, String> labels, double value) implements Value {}

  /**
   * A number that only grows.
   *
   * @param name name of the family, without {@code _total}
   * @param labels labels
   * @param value the number
   */
  public record Counter(String name, Map<String, String> labels, double value) implements Value {}

  /**
   * A distribution.
   *
   * @param name name of the family
   * @param labels labels
   * @param bounds upper bounds of the buckets, ascending, the infinite one left out
   * @param counts observations in each bucket alone, one more than bounds
   * @param sum sum of the observations
   */
  public record Histogram(String name, Map<String, String> labels, List<Double> bounds, List<Long> counts, double sum)
      implements Value {
    /** Copies the lists. */
    public Histogram {
      bounds = List.copyOf(bounds);
      counts = List.copyOf(counts);
      if (counts.size() != bounds.size() + 1) {
        throw new IllegalArgumentException(counts.size() + " counts for " + bounds.size() + " bounds");
      }
    }

    /** Number of observations. */
    public long count() {
      long total = 0;
      for (long count : counts) {
        total += count;
      }
      return total;
    }

    /** Mean of the observations, NaN if there are none. */
    public double mean() {
      return sum / count();
    }

    /**
     * Estimates a quantile as PromQL's {@code histogram_quantile} does: linear inside a bucket, the largest finite
     * bound beyond it.
     *
     * @param q in [0, 1]
     * @return the estimate, NaN if there are no observations
     */
    public double quantile(double q) {
      if (!(q >= 0 && q <= 1)) {
        throw new IllegalArgumentException("quantile " + q + ": must be in [0, 1]");
      }
      long total = count();
      if (total == 0 || bounds.isEmpty()) {
        return Double.NaN;
      }
      double rank = q * total;
      long below = 0;
      for (int i = 0; i < bounds.size(); i++) {
        long count = counts.get(i);
        if (count > 0 && below + count >= rank) {
          double lower = i == 0 ? Math.min(0, bounds.get(0)) : bounds.get(i - 1);
          return lower + (bounds.get(i) - lower) * Math.max(0, rank - below) / count;
        }
        below += count;
      }
      return bounds.get(bounds.size() - 1);
    }
  }

  /** The gauge of a name whose labels contain {@code labels}. */
  public Optional<Gauge> gauge(String name, Map<String, String> labels) {
    return find(Gauge.class, name, labels);
  }

  /** The counter of a name whose labels contain {@code labels}. */
  public Optional<Counter> counter(String name, Map<String, String> labels) {
    return find(Counter.class, name, labels);
  }

  /** The histogram of a name whose labels contain {@code labels}. */
  public Optional<Histogram> histogram(String name, Map<String, String> labels) {
    return find(Histogram.class, name, labels);
  }

  /** All values of a name. */
  public List<Value> named(String name) {
    List<Value> found = new ArrayList<>();
    for (Value value : values) {
      if (value.name().equals(name)) {
        found.add(value);
      }
    }
    return found;
  }

  private <T extends Value> Optional<T> find(Class<T> type, String name, Map<String, String> labels) {
    for (Value value : values) {
      if (type.isInstance(value) && value.name().equals(name)
          && value.labels().entrySet().containsAll(labels.entrySet())) {
        return Optional.of(type.cast(value));
      }
    }
    return Optional.empty();
  }
}
