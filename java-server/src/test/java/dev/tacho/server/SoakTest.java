package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/**
 * A server with two engines under random arrivals, disconnects and sleeps, for as many seconds as the property {@code
 * tacho.soak.seconds} says. What the clients counted is what the server counted, every scrape balances, and at the end
 * nothing is left behind.
 */
class SoakTest {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final long SECONDS = Long.getLong("tacho.soak.seconds", 60);
  private static final long SEED = Long.getLong("tacho.soak.seed", 1);
  private static final int CLIENTS = 10;
  private static final int VOCABULARY = 256;

  /** Sums of the series of a scrape by the name of their family, or by name and reason. */
  private record Scrape(Map<String, Double> sums) {
    static Scrape of(String page) {
      Map<String, Double> sums = new HashMap<>();
      for (String line : page.lines().toList()) {
        if (line.startsWith("#") || line.isBlank()) {
          continue;
        }
        double value = Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1));
        sums.merge(line.split("[{ ]", 2)[0], value, Double::sum);
        if (line.startsWith("http_requests_total{handler=\"/v1/completions\"")) {
          sums.merge(line.contains("2xx") ? "completions 2xx" : "completions other", value, Double::sum);
        }
      }
      return new Scrape(sums);
    }

    double sum(String family) {
      return sums.getOrDefault(family, 0.0);
    }

    double unfinished() {
      return sum("vllm:num_requests_running") + sum("vllm:num_requests_waiting");
    }

    void assertBalanced() {
      assertThat(sum("tacho:requests_accepted_total") - sum("vllm:request_success_total"))
          .as("accepted - finished = running + waiting, in one scrape")
          .isEqualTo(unfinished());
    }
  }

  private final AtomicLong requests = new AtomicLong();
  private final AtomicLong sequences = new AtomicLong();
  private final AtomicLong tokens = new AtomicLong();
  private final AtomicLong unreadTokens = new AtomicLong();
  private final AtomicLong disconnects = new AtomicLong();
  private final AtomicLong aborted = new AtomicLong();
  private final AtomicLong sleeps = new AtomicLong();
  private final AtomicLong scrapes = new AtomicLong();
  private final long endNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
  private String url = "";

  private boolean goesOn() {
    return System.nanoTime() - endNanos < 0;
  }

  private HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create(url + path)).timeout(Duration.ofSeconds(60));
  }

  private Scrape scrape(HttpClient client) throws IOException, InterruptedException {
    return Scrape.of(client.send(request("/metrics").build(), HttpResponse.BodyHandlers.ofString()).body());
  }

  @Test
  void nothingIsLostAndNothingIsLeftBehind() throws Exception {
    EngineConfig config =
        EngineConfig.builder()
            .model(BundledModel.FILE)
            .maxModelLen(256)
            .maxNumSeqs(6)
            .numGpuBlocksOverride(40)
            .dataParallelSize(2)
            .enableSleepMode(true)
            .build();
    try (Engine engine = Engine.open(config);
        HttpApi api = HttpApi.start(engine, "127.0.0.1", 0);
        HttpClient client = HttpClient.newHttpClient()) {
      url = api.url();
      work();
      Scrape last = scrape(client);
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
      while (last.unfinished() > 0 && System.nanoTime() < deadline) {
        last = scrape(client);
      }
      String seed = "seed " + SEED;
      assertThat(last.unfinished()).as(seed).isZero();
      assertThat(last.sum("vllm:kv_cache_usage_perc")).as(seed).isZero();
      assertThat(engine.resetPrefixCache()).as("all blocks are free, %s", seed).isTrue();
      assertThat(last.sum("tacho:requests_accepted_total")).as(seed).isEqualTo((double) sequences.get());
      assertThat(last.sum("vllm:request_success_total")).as(seed).isEqualTo((double) sequences.get());
      assertThat(last.sum("vllm:generation_tokens_total"))
          .as("known tokens, and what those who left have not read, %s", seed)
          .isBetween((double) tokens.get(), (double) tokens.get() + unreadTokens.get());
      assertThat(last.sum("tacho:events_lost_total")).as(seed).isZero();
      while (last.sum("completions 2xx") < requests.get() && System.nanoTime() < deadline) {
        last = scrape(client);
      }
      assertThat(last.sum("completions 2xx")).as(seed).isEqualTo((double) requests.get());
      assertThat(last.sum("completions other")).as(seed).isZero();
      assertThat(disconnects).as(seed).hasPositiveValue();
      assertThat(sleeps).as(seed).hasPositiveValue();
      System.out.printf(
          "soak of %d s, %s: %d requests, %d sequences (%d aborted by sleep), %d tokens read, %d disconnects,"
              + " %d sleeps, %d scrapes%n",
          SECONDS, seed, requests.get(), sequences.get(), aborted.get(), tokens.get(), disconnects.get(),
          sleeps.get(), scrapes.get());
    }
  }

  private void work() throws Exception {
    List<Callable<Void>> tasks = new ArrayList<>();
    for (int i = 0; i < CLIENTS; i++) {
      Random random = new Random(SEED * 1000 + i);
      tasks.add(() -> client(random));
    }
    tasks.add(() -> sleeper(new Random(SEED * 1000 + 500)));
    tasks.add(this::scraper);
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (Future<Void> task : threads.invokeAll(tasks)) {
        task.get();
      }
    }
  }

  private Void scraper() throws IOException, InterruptedException {
    try (HttpClient client = HttpClient.newHttpClient()) {
      while (goesOn()) {
        scrape(client).assertBalanced();
        scrapes.incrementAndGet();
        Thread.sleep(20);
      }
    }
    return null;
  }

  private Void sleeper(Random random) throws IOException, InterruptedException {
    String[] modes = {"abort", "wait", "keep"};
    try (HttpClient client = HttpClient.newHttpClient()) {
      while (goesOn()) {
        Thread.sleep(random.nextInt(1500));
        String query = "?level=" + random.nextInt(3) + "&mode=" + modes[random.nextInt(modes.length)];
        post(client, "/sleep" + query);
        sleeps.incrementAndGet();
        Thread.sleep(random.nextInt(200));
        if (random.nextBoolean()) {
          post(client, "/wake_up?tags=kv_cache");
        }
        post(client, "/wake_up");
      }
    }
    return null;
  }

  private void post(HttpClient client, String path) throws IOException, InterruptedException {
    HttpRequest post = request(path).POST(HttpRequest.BodyPublishers.noBody()).build();
    HttpResponse<String> response = client.send(post, HttpResponse.BodyHandlers.ofString());
    assertThat(response.statusCode()).as("%s: %s", path, response.body()).isEqualTo(200);
  }

  private Void client(Random random) throws IOException, InterruptedException {
    try (HttpClient client = HttpClient.newHttpClient()) {
      while (goesOn()) {
        Thread.sleep(random.nextInt(40));
        List<Integer> prompt = random.ints(1 + random.nextInt(60), 3, VOCABULARY).boxed().toList();
        int maxTokens = 1 + random.nextInt(80);
        String body =
            "{\"prompt\": " + prompt + ", \"max_tokens\": " + maxTokens + ", \"seed\": " + random.nextInt(100);
        switch (random.nextInt(4)) {
          case 0 -> leave(client, body + "}", maxTokens, random);
          case 1 -> readStream(client, body + "}");
          default -> readWhole(client, body, 1 + random.nextInt(3));
        }
      }
    }
    return null;
  }

  private HttpRequest completion(String body) {
    return request("/v1/completions").POST(HttpRequest.BodyPublishers.ofString(body)).build();
  }

  private void readWhole(HttpClient client, String body, int n) throws IOException, InterruptedException {
    HttpResponse<String> response =
        client.send(completion(body + ", \"n\": " + n + "}"), HttpResponse.BodyHandlers.ofString());
    assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
    JsonNode answer = MAPPER.readTree(response.body());
    counted(n, answer.at("/usage/completion_tokens").asLong());
    for (JsonNode choice : answer.get("choices")) {
      countAbort(choice);
    }
  }

  private void readStream(HttpClient client, String body) throws IOException, InterruptedException {
    String streaming = body.replace("}", ", \"stream\": true, \"stream_options\": {\"include_usage\": true}}");
    HttpResponse<String> response = client.send(completion(streaming), HttpResponse.BodyHandlers.ofString());
    assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
    String[] events = response.body().strip().split("\n\n", -1);
    assertThat(events[events.length - 1]).as(response.body()).isEqualTo("data: [DONE]");
    JsonNode last = MAPPER.readTree(events[events.length - 2].substring("data: ".length()));
    counted(1, last.at("/usage/completion_tokens").asLong());
  }

  private void countAbort(JsonNode choice) {
    if (choice.get("finish_reason").asText().equals("abort")) {
      aborted.incrementAndGet();
    }
  }

  private void counted(int n, long generated) {
    requests.incrementAndGet();
    sequences.addAndGet(n);
    tokens.addAndGet(generated);
  }

  /** Reads some pieces of a stream, at least one, and goes away. */
  private void leave(HttpClient client, String body, int maxTokens, Random random)
      throws IOException, InterruptedException {
    HttpResponse<InputStream> response =
        client.send(
            completion(body.replace("}", ", \"stream\": true}")), HttpResponse.BodyHandlers.ofInputStream());
    assertThat(response.statusCode()).isEqualTo(200);
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(response.body(), StandardCharsets.UTF_8))) {
      int pieces = 1 + random.nextInt(10);
      for (int i = 0; i < pieces && lines.readLine() != null; i++) {
        assertThat(lines.readLine()).as("between two pieces").isNotNull().isEmpty();
      }
    }
    disconnects.incrementAndGet();
    unreadTokens.addAndGet(maxTokens);
    counted(1, 0);
  }
}
