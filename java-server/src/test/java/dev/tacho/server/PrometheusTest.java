package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import dev.tacho.metrics.Await;
import dev.tacho.metrics.perf.DevicePeaks;
import dev.tacho.metrics.prometheus.PrometheusServer;
import dev.tacho.metrics.prometheus.PromqlRecipes;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A real Prometheus server scrapes the server of a real model while clients use it; every recipe of docs/metrics.md has
 * a result. Fails where there is no {@code prometheus} on the path.
 */
@Timeout(60)
class PrometheusTest {
  private static final int CLIENTS = 3;
  private static final String BEGINNING = "Once there was a small dog who lived by the sea with a boy called Tom. ";

  private final AtomicBoolean ended = new AtomicBoolean();
  private final Set<Integer> statuses = ConcurrentHashMap.newKeySet();

  private static Engine engine() {
    return Engine.open(
        EngineConfig.builder()
            .model(BundledModel.FILE)
            .maxModelLen(256)
            .maxNumSeqs(4)
            .numGpuBlocksOverride(40)
            .set("speculative-config", "{\"method\": \"ngram\", \"num_speculative_tokens\": 3,"
                + " \"prompt_lookup_min\": 1, \"prompt_lookup_max\": 3}")
            .kvCacheMetrics(true)
            .kvCacheMetricsSample(1)
            .enablePrefixCaching(true)
            .devicePeaks(new DevicePeaks(1e11, 1e10))
            .build());
  }

  /** Half of the prompts end differently, so that cached blocks have to go; half are always the same. */
  private void use(HttpClient client, String url, int number) {
    for (int i = 0; !ended.get(); i++) {
      String prompt = BEGINNING + (i % 2 == 0 ? "" : "One day " + (CLIENTS * i + number) + " birds came. ".repeat(4));
      HttpRequest request =
          HttpRequest.newBuilder(URI.create(url + "/v1/completions"))
              .POST(
                  HttpRequest.BodyPublishers.ofString(
                      Json.text(
                          Json.object()
                              .put("prompt", prompt)
                              .put("max_tokens", 60)
                              .put("temperature", 0)
                              .put("ignore_eos", true))))
              .build();
      statuses.add(
          client
              .sendAsync(request, HttpResponse.BodyHandlers.ofString())
              .orTimeout(Await.SECONDS, TimeUnit.SECONDS)
              .join()
              .statusCode());
    }
  }

  @Test
  void everyRecipeHasAResultWhileARealModelServes(@TempDir Path folder) throws Exception {
    Thread[] clients = new Thread[CLIENTS];
    try (Engine engine = engine();
        HttpApi api = HttpApi.start(engine, "127.0.0.1", 0);
        HttpClient client = HttpClient.newHttpClient();
        PrometheusServer prometheus = PrometheusServer.start(folder, api.port())) {
      try {
        for (int i = 0; i < CLIENTS; i++) {
          int number = i;
          clients[i] = Thread.startVirtualThread(() -> use(client, api.url(), number));
        }
        assertThat(prometheus.unanswered(PromqlRecipes.all(), Duration.ofSeconds(35)))
            .as("recipes without a result")
            .isEmpty();
      } finally {
        ended.set(true);
        for (Thread each : clients) {
          Await.ended(each);
        }
      }
      assertThat(statuses).as("answers of the server").containsExactly(200);
    }
  }
}
