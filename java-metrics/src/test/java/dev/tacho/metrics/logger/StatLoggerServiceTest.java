package dev.tacho.metrics.logger;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.EngineMetricsSource;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Loggers on the class path: one of them cannot be made and harms nobody. */
class StatLoggerServiceTest {
  private final ClassLoader usual = Thread.currentThread().getContextClassLoader();

  @BeforeEach
  void provideServices(@TempDir Path folder) throws IOException {
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    Files.writeString(services.resolve(StatLogger.class.getName()),
        "dev.tacho.metrics.logger.NoSuchStatLogger\n" + DiscoveredStatLogger.class.getName() + "\n");
    Thread.currentThread().setContextClassLoader(new URLClassLoader(new URL[] {folder.toUri().toURL()}, usual));
  }

  @AfterEach
  void takeServicesAway() throws IOException {
    ((URLClassLoader) Thread.currentThread().getContextClassLoader()).close();
    Thread.currentThread().setContextClassLoader(usual);
  }

  private static EngineMetricsOptions.Builder options() {
    return EngineMetricsOptions.builder("m", 100).engineIndex(7).logStats(false)
        .registry(MetricsRegistry.create(MetricsCollector.onDemand()));
  }

  @Test
  @Timeout(30)
  void aServiceIsMadeForEachEngineAndSwitchesRecordingOn() {
    int before = DiscoveredStatLogger.MADE.get();
    try (EngineMetricsSource source = EngineMetricsSource.open(options().discoverPlugIns(true).build())) {
      assertThat(DiscoveredStatLogger.MADE.get() - before).isEqualTo(1);
      assertThat(source.engineWriter().enabled()).isTrue();
      source.engineWriter().snapshot(9, 0, 0, 1, 1, 0, 0, 0);
      source.engineWriter().commit();
      assertThat(source.exposition(ExpositionFormat.TEXT_0_0_4)).doesNotContain("vllm:");
      Await.until("the plug-in has seen 9 running", () -> DiscoveredStatLogger.RUNNING.get() == 9);
    }
  }

  @Test
  void servicesAreLeftOutWhenAskedTo() {
    try (EngineMetricsSource source = EngineMetricsSource.open(options().discoverPlugIns(false).build())) {
      assertThat(source.engineWriter().enabled()).isFalse();
    }
  }
}
