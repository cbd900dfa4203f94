package dev.tacho.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.stats.IterationDetails;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The options of vLLM that say what is measured and logged, from the configuration to what comes out. */
@Timeout(60)
class ObservabilityOptionsTest {
  private static final SamplingParams SHORT = SamplingParams.greedy().withMaxTokens(6);

  /** Keeps what it is told. */
  private static final class Recorder implements StatLogger {
    final AtomicLong generated = new AtomicLong();
    final List<List<Long>> details = Collections.synchronizedList(new ArrayList<>());
    volatile boolean closed;

    @Override
    public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
      if (iteration != null) {
        generated.addAndGet(iteration.generationTokens());
      }
      IterationDetails step = scheduler == null ? null : scheduler.details();
      if (step != null) {
        details.add(
            List.of(
                (long) step.contextRequests(),
                (long) step.contextTokens(),
                (long) step.generationRequests(),
                (long) step.generationTokens()));
      }
    }

    @Override
    public void close() {
      closed = true;
    }
  }

  private static EngineConfig.Builder config() {
    return EngineConfig.builder().model(Path.of("model.gguf"));
  }

  @Test
  void aMetricsDirectoryHasThePageAndRingsOfEachEngineWhileItIsOpen(@TempDir Path folder) throws IOException {
    Path directory = folder.resolve("metrics");
    ScriptedEngine scripted =
        ScriptedEngine.over(ScriptedRunner.saying("abc"), ScriptedRunner.saying("abc"))
            .with(options -> options.metricsDirectory(directory));
    try (Engine engine = scripted.open();
        Stream<Path> files = Files.list(directory)) {
      engine.complete("x", SHORT);
      assertThat(files).hasSizeGreaterThanOrEqualTo(6);
    }
    assertThat(directory).isEmptyDirectory();

    Path file = Files.writeString(folder.resolve("file"), "");
    ScriptedRunner refused = ScriptedRunner.saying("abc");
    assertThatThrownBy(
            () -> ScriptedEngine.over(refused).with(options -> options.metricsDirectory(file)).open().close())
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("metrics-directory")
        .hasMessageContaining(file + " is no directory");
    assertThat(refused.closed()).isTrue();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "kv-cache-metrics-sample|0",
        "kv-cache-metrics-sample|1.5",
        "kv-cache-metrics-sample|NaN",
        "kv-cache-metrics-sample|some",
        "cudagraph-metrics|true",
        "show-hidden-metrics-for-version|newest",
        "custom-histogram-buckets|{\"request_latency\": [1, 1]}",
        "custom-histogram-buckets|{\"nothing\": [1]}",
        "custom-histogram-buckets|{\"request_latency\": [true]}",
        "custom-histogram-buckets|{\"request_latency\": [1, 2}",
        "custom-histogram-buckets|request_latency",
        "peak-flops|1e12",
        "peak-flops|-1",
        "peak-bandwidth|1e10",
        "peak-bandwidth|Infinity",
        "data-parallel-size|0",
        "data-parallel-size|65"
      })
  void badValuesAreRefusedWithTheOptionsName(String option, String value) {
    assertThatThrownBy(() -> config().set(option, value).build())
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("--" + option);
  }

  @Test
  void residencySamplingWithoutStatisticsIsRefusedAtTheStart() {
    assertThatThrownBy(() -> config().kvCacheMetrics(true).disableLogStats(true).build())
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("--kv-cache-metrics")
        .hasMessageContaining("disable-log-stats");
  }

  private static MetricsSnapshot afterOneRequest(UnaryOperator<EngineConfig.Builder> options) {
    try (Engine engine = ScriptedEngine.over(ScriptedRunner.endless()).with(options).open()) {
      var _ = engine.complete("a prompt of some bytes", SHORT);
      return engine.metrics().snapshot();
    }
  }

  @Test
  void statisticsOffRecordNothingButTheState() {
    MetricsSnapshot snapshot = afterOneRequest(options -> options.disableLogStats(true));
    assertThat(snapshot.values()).extracting(MetricsSnapshot.Value::name)
        .contains("tacho:engine_state")
        .doesNotContain("vllm:generation_tokens", "vllm:num_requests_running", "vllm:engine_sleep_state");
  }

  @Test
  void aPlugInSwitchesRecordingOnAlsoWithStatisticsOff() {
    Recorder plugIn = new Recorder();
    ScriptedEngine scripted =
        ScriptedEngine.over(ScriptedRunner.endless()).with(o -> o.disableLogStats(true)).plugIn(index -> plugIn);
    try (Engine engine = scripted.open()) {
      var _ = engine.complete("a", SHORT);
      var _ = Await.value("six tokens are counted", engine.metrics()::snapshot, _ -> plugIn.generated.get() >= 6);
      assertThat(engine.metrics().snapshot().counter("vllm:generation_tokens", Map.of())).isEmpty();
    }
    assertThat(plugIn.generated).hasValue(6);
    Await.until("the plug-in is closed", () -> plugIn.closed);
  }

  @Test
  void customBucketsReplaceThoseOfTheirFamily() {
    MetricsSnapshot snapshot =
        afterOneRequest(options -> options.customHistogramBuckets("{\"request_latency\": [0.5, 1, 50]}"));
    assertThat(snapshot.histogram("vllm:e2e_request_latency_seconds", Map.of()).orElseThrow().bounds())
        .containsExactly(0.5, 1.0, 50.0);
    assertThat(snapshot.histogram("vllm:e2e_request_latency_seconds", Map.of()).orElseThrow().count()).isEqualTo(1);
  }

  /** Each block that gives way to another is one sample, as all are followed. */
  @Test
  void residencyOfBlocksComesFromThePool() {
    ScriptedEngine scripted =
        ScriptedEngine.over(ScriptedRunner.endless())
            .numBlocks(9)
            .maxModelLen(100)
            .maxNumSeqs(1)
            .with(options -> options.kvCacheMetrics(true).kvCacheMetricsSample(1));
    try (Engine engine = scripted.open()) {
      SamplingParams one = SHORT.withMaxTokens(1);
      // Three blocks of 16 tokens each time: the third prompt needs one that the first or second has left.
      for (char c = 'a'; c <= 'c'; c++) {
        var _ = engine.complete(String.valueOf(c).repeat(48), one);
      }
      MetricsSnapshot snapshot = engine.metrics().snapshot();
      long evicted = snapshot.histogram("vllm:kv_block_lifetime_seconds", Map.of()).orElseThrow().count();
      assertThat(evicted).isEqualTo(9 - 8);
      assertThat(snapshot.histogram("vllm:kv_block_idle_before_evict_seconds", Map.of()).orElseThrow().count())
          .isEqualTo(evicted);
    }
  }

  @Test
  void iterationDetailsSayWhatEachStepWorkedOn() {
    Recorder plugIn = new Recorder();
    ScriptedEngine scripted =
        ScriptedEngine.over(ScriptedRunner.endless())
            .with(o -> o.enableLoggingIterationDetails(true))
            .plugIn(index -> plugIn);
    try (Engine engine = scripted.open()) {
      var _ = engine.complete("abc", SHORT.withMaxTokens(3));
      var _ = Await.value("three details", engine.metrics()::snapshot, _ -> plugIn.details.size() >= 3);
    }
    int prompt = new ByteCodec().encode("abc").length;
    assertThat(plugIn.details)
        .containsExactly(List.of(1L, (long) prompt, 0L, 0L), List.of(0L, 0L, 1L, 1L), List.of(0L, 0L, 1L, 1L));
  }

  @Test
  void cacheConfigSaysWhatIsFollowed() {
    MetricsSnapshot snapshot = afterOneRequest(options -> options.kvCacheMetrics(true).kvCacheMetricsSample(0.5));
    Map<String, String> labels = snapshot.named("vllm:cache_config_info").getFirst().labels();
    assertThat(labels).containsEntry("kv_cache_metrics", "True").containsEntry("kv_cache_metrics_sample", "0.5");
  }
}
