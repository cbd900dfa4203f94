package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import dev.tacho.metrics.Await;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What operators do over HTTP: sleep and wake, choose an engine, watch the server; and clients that speak badly. */
@Timeout(120)
class HttpOperationsTest {
  private static final String SHORT =
      "{\"prompt\": [1, 5], \"max_tokens\": 4, \"temperature\": 0, \"ignore_eos\": true}";

  private static Engine engine;
  private static HttpApi api;
  private static HttpClient client;

  @BeforeAll
  static void start() {
    EngineConfig.Builder config = EngineConfig.builder().model(BundledModel.FILE).maxNumSeqs(8);
    engine = Engine.open(config.dataParallelSize(2).enableSleepMode(true).build());
    api = HttpApi.start(engine, "127.0.0.1", 0);
    client = HttpClient.newHttpClient();
  }

  @AfterAll
  static void stop() {
    client.close();
    api.close();
    engine.close();
  }

  private static HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create(api.url() + path));
  }

  private static HttpResponse<String> send(HttpRequest.Builder request) throws IOException, InterruptedException {
    return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  private static HttpResponse<String> post(String path) throws IOException, InterruptedException {
    return send(request(path).POST(HttpRequest.BodyPublishers.noBody()));
  }

  private static HttpRequest.Builder completion(String body) {
    return request("/v1/completions").POST(HttpRequest.BodyPublishers.ofString(body));
  }

  private static double metric(String series) throws IOException, InterruptedException {
    String prefix = series + " ";
    return send(request("/metrics")).body().lines()
        .filter(line -> line.startsWith(prefix))
        .mapToDouble(line -> Double.parseDouble(line.substring(prefix.length())))
        .findFirst()
        .orElse(0);
  }

  private static double operations(String operation) throws IOException, InterruptedException {
    return metric("vllm:sleep_mode_operation_duration_seconds_count{operation=\"" + operation + "\"}");
  }

  private static double waiting() throws IOException, InterruptedException {
    return metric("vllm:num_requests_waiting{engine=\"0\",model_name=\"tacho-tales\"}")
        + metric("vllm:num_requests_waiting{engine=\"1\",model_name=\"tacho-tales\"}");
  }

  @Test
  void sleepsAndWakesAsAskedAndHoldsRequestsBackMeanwhile() throws Exception {
    double sleeps = operations("sleep");
    double wakes = operations("wake");
    assertThat(send(request("/is_sleeping")).body()).isEqualTo("{\"is_sleeping\":false}");
    assertThat(post("/sleep").statusCode()).as("level 1 if nothing is said").isEqualTo(200);
    assertThat(send(request("/is_sleeping")).body()).isEqualTo("{\"is_sleeping\":true}");
    assertThat(send(request("/health")).statusCode()).isEqualTo(200);
    assertThat(
            metric(
                "vllm:engine_sleep_state{engine=\"1\",model_name=\"tacho-tales\","
                    + "sleep_state=\"weights_offloaded\"}"))
        .isEqualTo(1);
    CompletableFuture<HttpResponse<String>> held =
        client.sendAsync(completion(SHORT).build(), HttpResponse.BodyHandlers.ofString());
    Await.until("a request waits", () -> waiting() >= 1);
    assertThat(post("/sleep?level=2&mode=keep").statusCode()).isEqualTo(200);
    assertThat(post("/wake_up?tags=kv_cache").statusCode()).isEqualTo(200);
    assertThat(send(request("/is_sleeping")).body()).isEqualTo("{\"is_sleeping\":true}");
    assertThat(held).isNotDone();
    assertThat(post("/wake_up?tags=kv_cache&tags=weights").statusCode()).isEqualTo(200);
    assertThat(send(request("/is_sleeping")).body()).isEqualTo("{\"is_sleeping\":false}");
    assertThat(held.get(20, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
    assertThat(operations("sleep")).isEqualTo(sleeps + 2);
    assertThat(operations("wake")).isEqualTo(wakes + 2);
    assertThat(metric("vllm:sleep_mode_operations_in_flight{operation=\"sleep\"}")).isZero();
  }

  @Test
  void anAnswerSaysWhatBecameOfItsDrafts() throws Exception {
    EngineConfig config =
        EngineConfig.builder()
            .model(BundledModel.FILE)
            .maxNumSeqs(2)
            .set("speculative-config", "{\"method\": \"ngram\", \"num_speculative_tokens\": 3}")
            .set("per-request-spec-decode-metrics", "detailed")
            .build();
    String body = "{\"prompt\": \"the dog ran to the dog ran to the dog ran\", \"max_tokens\": 60, "
        + "\"temperature\": 0, \"ignore_eos\": true";
    try (Engine drafting = Engine.open(config);
        HttpApi server = HttpApi.start(drafting, "127.0.0.1", 0)) {
      JsonNode figures = new ObjectMapper().readTree(complete(server, body + "}")).at("/metrics/speculative_decoding");
      int steps = figures.get("num_spec_steps").asInt();
      int accepted = figures.get("num_accepted_draft_tokens").asInt();
      int drafted = figures.get("num_draft_tokens").asInt();
      assertThat(steps).isPositive();
      assertThat(drafted).isBetween(steps, 3 * steps);
      assertThat(figures.get("num_spec_tokens").asInt()).isEqualTo(3);
      assertThat(figures.get("mean_acceptance_length").asDouble()).isEqualTo(1 + (double) accepted / steps);
      assertThat(figures.get("draft_acceptance_rate").asDouble()).isEqualTo((double) accepted / drafted);
      assertThat(figures.get("acceptance_histogram")).hasSize(4);
      assertThat(figures.get("acceptance_histogram").valueStream().mapToInt(JsonNode::asInt).sum()).isEqualTo(steps);
      assertThat(figures.get("per_step_accepted").valueStream().mapToInt(JsonNode::asInt).sum()).isEqualTo(accepted);
      assertThat(figures.get("per_step_drafted").valueStream().mapToInt(JsonNode::asInt).sum()).isEqualTo(drafted);

      assertThat(complete(server, body + ", \"n\": 2}")).doesNotContain("speculative_decoding");
      String stream = complete(server, body + ", \"stream\": true, \"stream_options\": {\"include_usage\": true}}");
      assertThat(stream.lines().filter(line -> line.contains("speculative_decoding")))
          .singleElement().asString().contains("\"usage\"");
    }
    assertThat(send(completion(SHORT)).body()).as("without drafts").doesNotContain("\"metrics\"");
  }

  private static String complete(HttpApi server, String body) throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(server.url() + "/v1/completions"))
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
    return client.send(request, HttpResponse.BodyHandlers.ofString()).body();
  }

  @ParameterizedTest
  @CsvSource({
    "/sleep?level=3, 400, level",
    "/sleep?level=deep, 400, level",
    "/sleep?mode=slowly, 400, mode",
    "/wake_up?tags=cache, 400, tags",
    "/is_sleeping, 405, allowed"
  })
  void badWordsAreRefused(String path, int status, String message) throws Exception {
    HttpResponse<String> response = post(path);
    assertThat(response.statusCode()).isEqualTo(status);
    assertThat(response.body()).contains(message);
    assertThat(engine.isSleeping()).isFalse();
  }

  @Test
  void aClientMayChooseTheEngineAndAPriority() throws Exception {
    String tokens = "vllm:generation_tokens_total{engine=\"1\",model_name=\"tacho-tales\"}";
    double before = metric(tokens);
    HttpResponse<String> answer = send(completion(SHORT).header("X-data-parallel-rank", "1"));
    assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
    assertThat(metric(tokens) - before).isEqualTo(4);
    HttpResponse<String> none = send(completion(SHORT).header("X-data-parallel-rank", "2"));
    assertThat(none.statusCode()).isEqualTo(400);
    assertThat(none.body()).contains("data_parallel_rank");
    assertThat(send(completion(SHORT).header("X-data-parallel-rank", "x")).statusCode()).isEqualTo(400);
    String urgent = SHORT.replace("{", "{\"priority\": -3, ");
    assertThat(send(completion(urgent)).statusCode()).isEqualTo(200);
    assertThat(send(completion(SHORT.replace("{", "{\"priority\": 0.5, "))).body()).contains("priority");
  }

  @Test
  void stopTokenIdsOutsideTheVocabularyAreRefused() throws Exception {
    HttpResponse<String> answer = send(completion(SHORT.replace("{", "{\"stop_token_ids\": [7, 9999999], ")));
    assertThat(answer.statusCode()).isEqualTo(400);
    assertThat(answer.body()).contains("stop_token_ids").contains("9999999");
  }

  @Test
  void requestsAreCountedByRouteAndStrangePathsMakeNoSeries() throws Exception {
    String ok = "http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"2xx\"}";
    String bad = "http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"4xx\"}";
    String strange = "http_requests_total{handler=\"none\",method=\"GET\",status=\"4xx\"}";
    String timed = "http_request_duration_seconds_count{handler=\"/v1/completions\",method=\"POST\"}";
    double oks = metric(ok);
    double bads = metric(bad);
    double stranges = metric(strange);
    double times = metric(timed);
    send(completion(SHORT));
    send(completion(SHORT.replace("{", "{\"stream\": true, ")));
    send(completion("{"));
    for (int i = 0; i < 20; i++) {
      send(request("/no/such/" + i));
    }
    send(request("/odd").method("BREW", HttpRequest.BodyPublishers.noBody()));
    // A request is counted when its answer is out, which the client may see first.
    Await.until(
        "all are counted",
        () -> metric(ok) >= oks + 2 && metric(bad) >= bads + 1 && metric(strange) >= stranges + 20);
    assertThat(metric(ok)).isEqualTo(oks + 2);
    assertThat(metric(bad)).isEqualTo(bads + 1);
    assertThat(metric(timed)).isEqualTo(times + 3);
    assertThat(metric(strange)).isEqualTo(stranges + 20);
    String page = send(request("/metrics")).body();
    assertThat(page).contains("method=\"OTHER\"").doesNotContain("BREW").doesNotContain("/no/such");
    assertThat(page.lines().filter(line -> line.startsWith("http_")))
        .noneMatch(line -> line.contains("/metrics") || line.contains("/health"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "GET /health HTTP/1.0~~~~|505",
        "GET /health HTTP/2~~~~|505",
        "GET /health HTTP/1.1~Host: a~~|400",
        "rubbish~~~|400",
        "POST /v1/completions HTTP/1.1~~Host: a~~Content-Length: -5~~~~|400",
        "POST /v1/completions HTTP/1.1~~Host: a~~Content-Length: many~~~~|400"
      })
  void whoSpeaksSomethingElseIsToldSo(String text, int status) throws IOException {
    // In the table two waves are CR LF, and one is LF alone.
    String bytes = text.replace("~~", "\r\n").replace("~", "\n");
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), api.port())) {
      socket.setSoTimeout(10_000);
      socket.getOutputStream().write(bytes.getBytes(StandardCharsets.US_ASCII));
      String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(answer).startsWith("HTTP/1.1 " + status);
      assertThat(answer).contains("\"error\"");
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "Content-Length: 2~Content-Length: 60|400|must be one number",
        "Content-Length: 2~Transfer-Encoding: chunked|400|beside Transfer-Encoding",
        "Transfer-Encoding: gzip, chunked|501|gzip, chunked",
        "Transfer-Encoding: Chunked|501|Chunked",
        "Transfer-Encoding: chunked~Transfer-Encoding: identity|501|identity",
        "Expect: 100-continue~Content-Length: 2|404|nothing at"
      })
  void whereABodyMayEndElsewhereNothingIsReadBehindIt(String headers, int status, String words) throws IOException {
    String body = "{}";
    String next = "GET /version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    String path = headers.startsWith("Expect") ? "/nothing" : "/v1/completions";
    String head = "POST " + path + " HTTP/1.1\r\nHost: a\r\n" + headers.replace("~", "\r\n") + "\r\n\r\n";
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), api.port())) {
      socket.setSoTimeout(10_000);
      socket.getOutputStream().write((head + body + next).getBytes(StandardCharsets.US_ASCII));
      String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(answer).startsWith("HTTP/1.1 " + status).contains(words).containsOnlyOnce("HTTP/1.1 ");
    }
  }
}
