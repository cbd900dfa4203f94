package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A real Prometheus server, for tests: scrapes {@code /metrics} of one port each second. Starting fails where there is
 * no {@code prometheus} on the path: {@code scripts/check-tools --tests} says where to get it.
 */
public final class PrometheusServer implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Duration BETWEEN_ROUNDS = Duration.ofMillis(200);

  private final HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
  private final Process process;
  private final Path log;
  private final int port;

  private PrometheusServer(Process process, Path log, int port) {
    this.process = process;
    this.log = log;
    this.port = port;
  }

  /**
   * Starts it.
   *
   * @param folder empty, for its configuration, log and data
   * @param target the local port that it scrapes
   */
  public static PrometheusServer start(Path folder, int target) throws IOException {
    Path config = folder.resolve("prometheus.yml");
    Files.writeString(config, """
        global:
          scrape_interval: 1s
          scrape_timeout: 1s
        scrape_configs:
        - job_name: tacho
          static_configs:
          - targets: ['127.0.0.1:%d']
        """.formatted(target));
    int port = freePort();
    Path log = folder.resolve("log");
    Process process = new ProcessBuilder("prometheus", "--config.file=" + config,
        "--storage.tsdb.path=" + folder.resolve("data"), "--web.listen-address=127.0.0.1:" + port)
        .redirectErrorStream(true).redirectOutput(log.toFile()).start();
    return new PrometheusServer(process, log, port);
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  /** Asks queries until each has a result or the time is over; returns those that have none, by name. */
  public Map<String, String> unanswered(Map<String, String> queries, Duration time) throws InterruptedException {
    Map<String, String> open = new LinkedHashMap<>(queries);
    long end = System.nanoTime() + time.toNanos();
    while (!open.isEmpty() && System.nanoTime() < end) {
      assertThat(process.isAlive()).as(this::logText).isTrue();
      for (Map.Entry<String, String> query : Map.copyOf(open).entrySet()) {
        if (hasResult(query.getValue())) {
          open.remove(query.getKey());
        }
      }
      LockSupport.parkNanos(BETWEEN_ROUNDS.toNanos());
    }
    return open;
  }

  private boolean hasResult(String query) throws InterruptedException {
    URI uri = URI.create("http://127.0.0.1:" + port + "/api/v1/query?query="
        + URLEncoder.encode(query, StandardCharsets.UTF_8));
    try {
      JsonNode answer = JSON.readTree(client.send(HttpRequest.newBuilder(uri).timeout(Duration.ofSeconds(10)).build(),
          BodyHandlers.ofByteArray()).body());
      for (JsonNode series : answer.path("data").path("result")) {
        if (!series.path("value").path(1).asText().equals("NaN")) {
          return true;
        }
      }
      return false;
    } catch (IOException notUpYet) {
      return false;
    }
  }

  private String logText() {
    try {
      return Files.readString(log);
    } catch (IOException e) {
      return e.toString();
    }
  }

  @Override
  public void close() {
    client.close();
    process.destroy();
    process.onExit().completeOnTimeout(process, 10, TimeUnit.SECONDS).join();
    process.destroyForcibly();
  }
}
