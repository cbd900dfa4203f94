package dev.tacho.metrics.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.prometheus.BucketFamily;
import dev.tacho.metrics.prometheus.CustomBuckets;
import dev.tacho.metrics.prometheus.MetricCatalog;
import dev.tacho.metrics.prometheus.MetricFamily;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * The computed bucket bounds: defaults, series, replaced ones and what is refused.
 *
 * <table>
 *   <caption>differences on purpose</caption>
 *   <tr><td>prometheus-duplicate</td><td>equal bounds are refused, also in code</td></tr>
 *   <tr><td>prometheus-explicit-inf</td><td>the infinite bound is always added, so it is refused when given</td></tr>
 * </table>
 */
class BucketsGoldenTest {
  private static final Set<String> DIFFERENT = Set.of("prometheus-duplicate", "prometheus-explicit-inf");

  /** What our message says for each kind of fault. */
  private static final Map<String, String> FAULTS = Map.of(
      "boolean_bound", "a boolean",
      "type_error", "must be a list of numbers",
      "unknown_family", "is no family",
      "empty_list", "must not be an empty list",
      "bound_not_finite_positive", "must be finite and positive",
      "not_strictly_increasing", "strictly increasing");

  @TestFactory
  Stream<DynamicTest> cases() {
    return GoldenFile.cases("buckets").map(c -> DynamicTest.dynamicTest(c.get("id").asText(), () -> run(c)));
  }

  private static void run(JsonNode golden) {
    JsonNode expected = golden.path("expected");
    switch (golden.get("kind").asText()) {
      case "build_1_2_5" -> assertThat(BucketFamily.REQUEST_TOKENS.bounds(golden.get("max_model_len").asInt()))
          .containsExactly(doubles(expected));
      case "build_buckets" -> {
        int[] mantissas = StreamSupport.stream(golden.get("mantissas").spliterator(), false)
            .mapToInt(JsonNode::asInt).toArray();
        assertThat(BucketFamily.series(mantissas, golden.get("max_value").asLong()))
            .containsExactly(doubles(expected));
      }
      case "family_default" -> {
        if (golden.has("expected_error")) {
          assertThatThrownBy(() -> EngineMetricsOptions.builder("m", 0)).hasMessageContaining("maxModelLen");
        } else {
          assertThat(family(golden).bounds(golden.path("max_model_len").asInt(1)))
              .containsExactly(doubles(expected));
        }
      }
      case "override" -> assertThat(CustomBuckets.of(GoldenStats.map(golden.get("overrides")))
          .bounds(family(golden), golden.get("max_model_len").asInt(1))).containsExactly(doubles(expected));
      case "validate_custom_histogram_buckets" -> validate(golden);
      case "prometheus_client_histogram_constructor" -> construct(golden);
      default -> expected.properties().forEach(BucketsGoldenTest::usesFamily);
    }
  }

  private static void validate(JsonNode golden) {
    Map<String, Object> input = GoldenStats.map(golden.get("input"));
    if (golden.get("accepted").asBoolean()) {
      CustomBuckets custom = CustomBuckets.of(input);
      golden.get("expected").properties().forEach(e -> assertThat(custom.bounds(
          BucketFamily.valueOf(e.getKey().toUpperCase(Locale.ROOT)), 1)).containsExactly(doubles(e.getValue())));
      return;
    }
    String said = FAULTS.getOrDefault(golden.get("error_kind").asText(), "customHistogramBuckets");
    String family = golden.get("error_locations").get(0).path(1).asText("");
    assertThatThrownBy(() -> CustomBuckets.of(input)).isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(said).hasMessageContaining(family);
  }

  private static void construct(JsonNode golden) {
    List<Double> bounds = new ArrayList<>();
    golden.get("input").forEach(b -> bounds.add(b.isNumber() ? b.asDouble() : Double.parseDouble(b.asText())));
    Map<String, List<Double>> given = Map.of("request_latency", bounds);
    if (golden.get("accepted").asBoolean() && !DIFFERENT.contains(golden.get("id").asText())) {
      assertThat(CustomBuckets.of(given).bounds(BucketFamily.REQUEST_LATENCY, 1))
          .containsExactly(bounds.stream().mapToDouble(Double::doubleValue).toArray());
    } else {
      assertThatThrownBy(() -> CustomBuckets.of(given)).isInstanceOf(IllegalArgumentException.class);
    }
  }

  private static BucketFamily family(JsonNode golden) {
    return BucketFamily.valueOf(golden.get("family").asText().toUpperCase(Locale.ROOT));
  }

  private static void usesFamily(Map.Entry<String, JsonNode> metric) {
    for (MetricFamily family : MetricCatalog.families()) {
      BucketFamily buckets = family.buckets();
      if (family.name().equals(metric.getKey())) {
        assertThat(buckets).isNotNull();
        assertThat(buckets == null ? "" : buckets.option()).isEqualTo(metric.getValue().asText());
      }
    }
  }

  private static double[] doubles(JsonNode list) {
    double[] values = new double[list.size()];
    Arrays.setAll(values, i -> list.get(i).asDouble());
    return values;
  }
}
