package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import dev.tacho.metrics.FakeEngine;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.perf.DevicePeaks;
import dev.tacho.metrics.perf.ModelShape;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A real Prometheus server scrapes two synthetic engines over HTTP; every recipe of docs/metrics.md has a result in its
 * HTTP API. Fails where there is no {@code prometheus} on the path: {@code scripts/check-tools --tests} says where to
 * get it.
 */
class PrometheusServerTest {
  private static final ModelShape MODEL = ModelShape.dense(2, 64, 4, 2, 16, 128, 512, 4, 2, 4);

  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());
  private long work;

  @Test
  @Timeout(90)
  void everyRecipeHasAResultAfterTraffic(@TempDir Path folder) throws Exception {
    JvmMetrics.registerIn(registry);
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    try (FakeEngine first = engine(0); FakeEngine second = engine(1);
        var executor = Executors.newVirtualThreadPerTaskExecutor()) {
      server.setExecutor(executor);
      server.createContext("/metrics", exchange -> {
        traffic(first);
        traffic(second);
        ExpositionFormat format = ExpositionFormat.ofAccept(
            String.join(",", exchange.getRequestHeaders().getOrDefault("Accept", List.of())));
        byte[] page = registry.expositionBytes(format);
        exchange.getResponseHeaders().set("Content-Type", format.contentType());
        exchange.sendResponseHeaders(200, page.length);
        try (OutputStream body = exchange.getResponseBody()) {
          body.write(page);
        }
      });
      server.start();
      try (PrometheusServer prometheus = PrometheusServer.start(folder, server.getAddress().getPort())) {
        assertThat(prometheus.unanswered(PromqlRecipes.all(), Duration.ofSeconds(45)))
            .as("recipes without a result").isEmpty();
      }
    } finally {
      server.stop(0);
    }
  }

  private FakeEngine engine(int index) {
    FakeEngine engine = new FakeEngine(index, registry, o -> o.mfuMetrics(true).modelShape(MODEL).speculativeTokens(2)
        .kvCacheMetrics(true).cacheConfig(Map.of("block_size", "16", "num_gpu_blocks", "100")));
    engine.source().device().peaks(new DevicePeaks(1e9, 1e9));
    engine.source().device().counters(counters -> counters.work(work, work, work));
    return engine;
  }

  /** One request from arrival to its end, with everything that a recipe asks for. */
  private synchronized void traffic(FakeEngine engine) {
    work += 1_000_000;
    int slot = (int) (work / 1_000_000 % 256);
    long now = System.nanoTime() / 1_000_000;
    engine.queue(slot, now - 40, 20);
    engine.schedule(now - 30, slot);
    engine.events().preempted(slot, 0, FakeEngine.nanos(now - 25));
    engine.firstOutput(slot, now - 20, 20);
    StepShape shape = new StepShape();
    shape.add(true, 20, 0);
    engine.events().step(work, FakeEngine.nanos(now), FakeEngine.nanos(now), 0, shape);
    engine.events().draft(slot, 0, 2, 1);
    engine.events().evicted(2_000_000, 1_000_000, 500_000, -1, -1);
    engine.lastOutput(slot, now, 2, FinishReason.STOP);
    engine.events().snapshot(1, 1, 1, 50, 100, 1, 20, 16);
    engine.events().commit();
  }
}
