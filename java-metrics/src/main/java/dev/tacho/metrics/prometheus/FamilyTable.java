package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.prometheus.MetricFamily.Gate;
import dev.tacho.metrics.prometheus.MetricFamily.Question;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Collects the rows of a part of the {@link MetricCatalog} in the order in which they are written down. */
final class FamilyTable {
  private final List<MetricFamily> rows = new ArrayList<>();

  /** Begins the row of a gauge. */
  Row gauge(String name) {
    return new Row(name, MetricFamily.Type.GAUGE);
  }

  /** Begins the row of a counter. */
  Row counter(String name) {
    return new Row(name, MetricFamily.Type.COUNTER);
  }

  /** Begins the row of a histogram. */
  Row histogram(String name) {
    return new Row(name, MetricFamily.Type.HISTOGRAM);
  }

  /** The rows so far. */
  List<MetricFamily> rows() {
    return List.copyOf(rows);
  }

  /** A row being written: labels model_name and engine, published while statistics are recorded, unless told so. */
  final class Row {
    private final String name;
    private final MetricFamily.Type type;
    private List<String> labels = List.of("model_name", "engine");
    private List<String> values = List.of();
    private @Nullable BucketFamily buckets;
    private boolean onFirstUse;
    private Gate gate = Gate.LOG_STATS;
    private Question question = Question.RESOURCES;
    private Moment moves = Moment.SNAPSHOT;
    private String unit = "";

    private Row(String name, MetricFamily.Type type) {
      this.name = name;
      this.type = type;
    }

    Row labels(String... names) {
      labels = List.of(names);
      return this;
    }

    /** One more label, and its values that exist from the start. */
    Row by(String label, List<String> fixed) {
      labels = new ArrayList<>(labels);
      labels.add(label);
      values = fixed;
      return this;
    }

    Row by(String label, String... fixed) {
      return by(label, List.of(fixed));
    }

    /** One more label, whose values each engine has its own number of. */
    Row countedByEngine(String label) {
      return by(label, List.of());
    }

    Row buckets(BucketFamily family) {
      buckets = family;
      return this;
    }

    /** A child is shown from its first report on. */
    Row onFirstUse() {
      onFirstUse = true;
      return this;
    }

    Row gate(Gate when) {
      gate = when;
      return this;
    }

    Row asks(Question what) {
      question = what;
      return this;
    }

    Row moves(Moment when) {
      moves = when;
      return this;
    }

    Row unit(String what) {
      unit = what;
      return this;
    }

    /** Ends the row with its sentence for the exposition. */
    MetricFamily help(String sentence) {
      MetricFamily family =
          new MetricFamily(name, type, labels, values, buckets, onFirstUse, null, gate, question, moves, unit,
              sentence);
      for (MetricFamily other : rows) {
        if (other.baseName().equals(family.baseName())) {
          throw new IllegalArgumentException("two families are called " + family.baseName());
        }
      }
      rows.add(family);
      return family;
    }
  }
}
