package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Who sees families that a release has deprecated; names follow release 0.33. */
class HiddenMetricsTest {
  private static MetricFamily family(@Nullable String deprecatedIn) {
    return new MetricFamily("vllm:old", MetricFamily.Type.GAUGE, List.of("model_name", "engine"), List.of(), null,
        false, deprecatedIn, MetricFamily.Gate.LOG_STATS, MetricFamily.Question.QUEUE, Moment.SNAPSHOT, "", "Old.");
  }

  @ParameterizedTest
  @CsvSource({"0.32, true", "0.31, false", "0.33, false", "0.32.0, false", "v0.32, false", "0.320, false"})
  void theReleaseBeforeThisOneShowsThem(String version, boolean shown) {
    assertThat(HiddenMetrics.isShown(family("0.32.0"), HiddenMetrics.check(version))).isEqualTo(shown);
  }

  @Test
  void withoutAVersionTheyAreHiddenAndOthersAreNot() {
    assertThat(HiddenMetrics.isShown(family("0.32.0"), null)).isFalse();
    assertThat(HiddenMetrics.isShown(family(null), null)).isTrue();
    assertThat(MetricCatalog.families()).as("nothing is hidden at present").allMatch(f -> f.deprecatedIn() == null);
  }

  @Test
  void aBuildThatIsNoReleaseShowsThemToEveryVersion() {
    assertThat(HiddenMetrics.areShown(0, 0, "0.7")).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "newest", "0.", ".32", "0..32", "0,32", "v"})
  void whatIsNoVersionIsRefused(String version) {
    assertThatThrownBy(() -> EngineFamilies.builder("m", 0, 1).showHiddenMetricsForVersion(version))
        .isInstanceOf(IllegalArgumentException.class).hasMessageContaining("\"" + version + "\"");
  }
}
