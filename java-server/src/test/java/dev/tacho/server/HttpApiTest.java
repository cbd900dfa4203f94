package dev.tacho.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.tacho.engine.Engine;
import dev.tacho.engine.EngineConfig;
import dev.tacho.metrics.Await;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class HttpApiTest {
  private static final int CONTEXT = 512;
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private static Engine engine;
  private static HttpApi api;
  private static HttpClient client;

  @BeforeAll
  static void start() {
    engine = Engine.open(EngineConfig.builder().model(BundledModel.FILE).maxModelLen(CONTEXT).build());
    api = HttpApi.start(engine, "127.0.0.1", 0);
    client = HttpClient.newHttpClient();
  }

  @AfterAll
  static void stop() {
    client.close();
    api.close();
    engine.close();
  }

  private static HttpResponse<String> get(String path) throws IOException, InterruptedException {
    HttpRequest request = HttpRequest.newBuilder(URI.create(api.url() + path)).build();
    return client.send(request, HttpResponse.BodyHandlers.ofString());
  }

  private static HttpResponse<String> post(String json) throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(api.url() + "/v1/completions"))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(json.replace('\'', '"')))
            .build();
    return client.send(request, HttpResponse.BodyHandlers.ofString());
  }

  private static JsonNode answer(String json) throws IOException, InterruptedException {
    HttpResponse<String> response = post(json);
    assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
    return MAPPER.readTree(response.body());
  }

  private static JsonNode error(HttpResponse<String> response, int status) throws IOException {
    assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
    assertThat(response.headers().firstValue("content-type")).hasValue("application/json");
    JsonNode error = MAPPER.readTree(response.body()).get("error");
    assertThat(error.get("message").asText()).isNotBlank();
    assertThat(error.get("type").asText()).isNotBlank();
    return error;
  }

  private static List<JsonNode> pieces(String json) throws IOException, InterruptedException {
    HttpResponse<String> response = post(json);
    assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
    assertThat(response.headers().firstValue("content-type").orElseThrow()).startsWith("text/event-stream");
    List<String> events = List.of(response.body().split("\n\n"));
    assertThat(events.getLast()).isEqualTo("data: [DONE]");
    List<JsonNode> pieces = new ArrayList<>();
    for (String event : events.subList(0, events.size() - 1)) {
      assertThat(event).startsWith("data: ");
      pieces.add(MAPPER.readTree(event.substring("data: ".length())));
    }
    return pieces;
  }

  private static double metric(String series) throws IOException, InterruptedException {
    String prefix = series + " ";
    return get("/metrics")
        .body()
        .lines()
        .filter(line -> line.startsWith(prefix))
        .mapToDouble(line -> Double.parseDouble(line.substring(prefix.length())))
        .findFirst()
        .orElseThrow(() -> new AssertionError(series + " is not on the page"));
  }

  private static double aborts() throws IOException, InterruptedException {
    return metric("vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"tacho-tales\"}");
  }

  private static double running() throws IOException, InterruptedException {
    return metric("vllm:num_requests_running{engine=\"0\",model_name=\"tacho-tales\"}");
  }

  @ParameterizedTest(name = "temperature {0}, seed {1}")
  @CsvSource({"0, 1", "0.8, 1", "0.8, 2", "1.5, 3"})
  void piecesJoinToTheWholeAnswer(double temperature, long seed) throws Exception {
    String fields =
        "'prompt': 'Once upon a time', 'max_tokens': 40, 'temperature': " + temperature + ", 'seed': " + seed;
    JsonNode whole = answer("{" + fields + "}");
    List<JsonNode> pieces =
        pieces("{" + fields + ", 'stream': true, 'stream_options': {'include_usage': true}}");
    StringBuilder text = new StringBuilder();
    for (JsonNode piece : pieces) {
      text.append(piece.at("/choices/0/text").asText(""));
    }
    JsonNode last = pieces.get(pieces.size() - 2);
    assertThat(text.toString()).isEqualTo(whole.at("/choices/0/text").asText()).isNotEmpty();
    assertThat(last.at("/choices/0/finish_reason")).isEqualTo(whole.at("/choices/0/finish_reason"));
    assertThat(pieces.getLast().get("usage")).isEqualTo(whole.get("usage"));
  }

  @Test
  void theUsagePieceComesOnlyWhenAskedForAndJustBeforeDone() throws Exception {
    List<JsonNode> without = pieces("{'prompt': 'One day', 'max_tokens': 5, 'stream': true}");
    assertThat(without).allSatisfy(piece -> {
      assertThat(piece.get("choices")).hasSize(1);
      assertThat(piece.has("usage")).isFalse();
    });
    List<JsonNode> with =
        pieces("{'prompt': 'One day', 'max_tokens': 5, 'stream': true, 'stream_options': {'include_usage': true}}");
    assertThat(with.getLast().get("choices")).isEmpty();
    assertThat(with.getLast().at("/usage/completion_tokens").asInt()).isEqualTo(5);
    assertThat(with.subList(0, with.size() - 1)).allSatisfy(piece -> assertThat(piece.get("usage").isNull()).isTrue());
  }

  @Test
  void choicesOfSeveralPromptsAreNumberedInOrder() throws Exception {
    JsonNode body = answer("{'prompt': ['One day', 'Once upon'], 'n': 2, 'max_tokens': 3, 'seed': 5}");
    assertThat(body.get("choices")).hasSize(4);
    for (int i = 0; i < 4; i++) {
      assertThat(body.get("choices").get(i).get("index").asInt()).isEqualTo(i);
    }
    assertThat(body.at("/usage/completion_tokens").asInt()).isEqualTo(12);
    int promptTokens = engine.encode("One day").size() + engine.encode("Once upon").size();
    assertThat(body.at("/usage/prompt_tokens").asInt()).isEqualTo(promptTokens);
  }

  @Test
  void logprobsHaveTheChosenTokenAndTheBest() throws Exception {
    JsonNode body = answer("{'prompt': 'One day', 'max_tokens': 4, 'temperature': 0, 'logprobs': 3}");
    JsonNode logprobs = body.at("/choices/0/logprobs");
    assertThat(logprobs.get("tokens")).hasSize(4);
    for (int i = 0; i < 4; i++) {
      double chosen = logprobs.get("token_logprobs").get(i).asDouble();
      assertThat(chosen).isNegative();
      assertThat(logprobs.get("top_logprobs").get(i)).hasSizeBetween(1, 3);
      logprobs.get("top_logprobs").get(i).forEach(other -> assertThat(other.asDouble()).isLessThanOrEqualTo(chosen));
    }
  }

  @Test
  void userCase26_aRequestLongerThanTheContextIsRefusedWithBothNumbers() throws Exception {
    String ids = "5" + ",5".repeat(CONTEXT);
    JsonNode tooLong = error(post("{'prompt': [" + ids + "]}"), 400);
    assertThat(tooLong.get("code").asText()).isEqualTo("context_length_exceeded");
    assertThat(tooLong.get("message").asText()).contains("513", "512");
    assertThat(error(post("{'prompt': 'a', 'max_tokens': 0}"), 400).get("param").asText()).isEqualTo("max_tokens");
    assertThat(error(post("{'prompt': 'a', 'max_tokens': -3}"), 400).get("message").asText()).contains("-3");
    assertThat(error(post("{'prompt': 'a', 'max_tokens': 5000}"), 400).get("message").asText())
        .contains("5000", "512");
  }

  @Test
  void errorsHaveTheOpenAiShape() throws Exception {
    assertThat(error(post("{'prompt': 'a', 'model': 'gpt-9'}"), 404).get("code").asText()).isEqualTo("model_not_found");
    assertThat(error(post("{'prompt': 'a', 'whatever': 1}"), 400).get("param").asText()).isEqualTo("whatever");
    error(post("not json"), 400);
    error(get("/nothing/here"), 404);
    HttpResponse<String> wrongMethod = get("/v1/completions");
    error(wrongMethod, 405);
    assertThat(wrongMethod.headers().firstValue("allow")).hasValue("POST");
    assertThat(error(post("{'prompt': [99999999]}"), 400).get("message").asText()).contains("99999999");
  }

  @ParameterizedTest(name = "stream {0}, having sent more: {1}")
  @CsvSource({"true, false", "false, false", "false, true"})
  void aClientThatGoesAwayStopsItsRequest(boolean stream, boolean sendsMore) throws Exception {
    double before = aborts();
    String body =
        "{'prompt': 'Once upon a time', 'max_tokens': 400, 'ignore_eos': true, 'n': 16, 'stream': X}"
            .replace('\'', '"')
            .replace("X", Boolean.toString(stream));
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), api.port())) {
      OutputStream out = socket.getOutputStream();
      out.write(
          ("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
                  + body.length()
                  + "\r\n\r\n"
                  + body)
              .getBytes(StandardCharsets.UTF_8));
      out.flush();
      Await.until("the request runs", () -> running() > 0);
      if (sendsMore) {
        out.write("GET /health HTTP/1.1\r\n".getBytes(StandardCharsets.UTF_8));
        out.flush();
      }
    }
    Await.until("the request is aborted", () -> aborts() > before);
    Await.until("nothing runs", () -> running() == 0);
    assertThat(metric("vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"tacho-tales\"}")).isZero();
  }

  /** Sends a text as it is and reads until the server closes the connection. */
  private static String raw(String text) throws IOException {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), api.port())) {
      socket.setSoTimeout(30_000);
      socket.getOutputStream().write(text.getBytes(StandardCharsets.ISO_8859_1));
      return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  @ParameterizedTest(name = "{0}, stream {1}")
  @CsvSource({"close, false", "Close, true", "'TE, close', false"})
  void aClientThatAsksForItFindsItsConnectionClosed(String header, boolean stream) throws Exception {
    String body = "{\"prompt\": \"a\", \"max_tokens\": 3, \"stream\": " + stream + "}";
    String answer =
        raw(
            String.format(
                "POST /v1/completions HTTP/1.1\r\nHost: a\r\nConnection: %s\r\nContent-Length: %d\r\n\r\n%s",
                header, body.length(), body));
    assertThat(answer).startsWith("HTTP/1.1 200").contains("\"finish_reason\":\"length\"");
  }

  @ParameterizedTest(name = "{0}")
  @CsvSource({"/health, 200", "/metrics, 200", "/v1/completions, 405", "/nothing, 404"})
  void headHasTheStatusAndNoBody(String path, int status) throws Exception {
    String get = "GET /version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    String[] answers = raw("HEAD " + path + " HTTP/1.1\r\nHost: a\r\n\r\n" + get).split("\r\n\r\n", 2);
    assertThat(answers[0]).startsWith("HTTP/1.1 " + status);
    assertThat(answers[1]).startsWith("HTTP/1.1 200").contains("\"version\"");
  }

  @ParameterizedTest(name = "chunk size {0}")
  @ValueSource(strings = {"zz\r\n{}\r\n", "-5\r\n{}\r\n", "ffffffffffffffff\r\n{}\r\n", "2\n{}\n"})
  void aBodyWithoutAnEndIsRefusedAndNothingIsReadBehindIt(String chunk) throws Exception {
    String head = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    String answer = raw(head + chunk + "GET /version HTTP/1.1\r\nHost: a\r\n\r\n");
    assertThat(answer).startsWith("HTTP/1.1 400").contains("not chunked").doesNotContain("\"version\"");
  }

  @Test
  void everyRefusalHasWords() throws Exception {
    assertThat(error(post(""), 400).get("message").asText()).contains("JSON object");
    assertThat(raw("GET /health HTTP/1.1\r\n\r\n")).startsWith("HTTP/1.1 400").contains("\"message\":\"Bad Request\"");
    JsonNode longValue = error(post("{'prompt': 'a', 'echo': '" + "z".repeat(100_000) + "'}"), 400);
    assertThat(longValue.get("message").asText()).startsWith("echo: not supported").hasSizeLessThan(1100);
  }

  @Test
  void metricsCountWhatWasStreamed() throws Exception {
    String prompt = "vllm:prompt_tokens_total{engine=\"0\",model_name=\"tacho-tales\"}";
    String generated = "vllm:generation_tokens_total{engine=\"0\",model_name=\"tacho-tales\"}";
    double promptBefore = metric(prompt);
    double generatedBefore = metric(generated);
    JsonNode usage = answer("{'prompt': 'One day', 'max_tokens': 30}").get("usage");
    assertThat(metric(prompt) - promptBefore).isEqualTo(usage.get("prompt_tokens").asDouble());
    assertThat(metric(generated) - generatedBefore).isEqualTo(usage.get("completion_tokens").asDouble());
  }

  @Test
  void theFamiliesOfTheJvmAreOnThePageToo() throws Exception {
    assertThat(metric("jvm_memory_bytes_used{area=\"heap\"}")).isPositive();
    assertThat(metric("process_open_fds")).isPositive();
  }

  @Test
  void modelsHealthAndVersion() throws Exception {
    JsonNode model = MAPPER.readTree(get("/v1/models").body()).at("/data/0");
    assertThat(model.get("id").asText()).isEqualTo("tacho-tales");
    assertThat(model.get("max_model_len").asInt()).isEqualTo(CONTEXT);
    assertThat(get("/health").statusCode()).isEqualTo(200);
    assertThat(MAPPER.readTree(get("/version").body()).get("version").asText()).matches("\\d+\\.\\d+\\.\\d+.*");
  }

  @Test
  void aPortInUseIsNamed() {
    assertThatThrownBy(() -> HttpApi.start(engine, "127.0.0.1", api.port()))
        .isInstanceOf(ListenException.class)
        .hasMessageContaining("port " + api.port())
        .hasMessageContaining("--port");
  }

  @Test
  void anUnknownHostIsNamed() {
    assertThatThrownBy(() -> HttpApi.start(engine, "256.1.1.1", 0))
        .isInstanceOf(ListenException.class)
        .hasMessageContaining("256.1.1.1")
        .hasMessageContaining("--host");
  }

  /** The page as Prometheus's own checker sees it; what it says of vLLM's names is listed in docs/metrics.md. */
  @Test
  void promtoolFindsNothingButTheNamesThatVllmChose() throws Exception {
    Process promtool = new ProcessBuilder("promtool", "check", "metrics").redirectErrorStream(true).start();
    try (OutputStream in = promtool.getOutputStream()) {
      in.write(get("/metrics").body().getBytes(StandardCharsets.UTF_8));
    }
    Map<String, String> advice = new TreeMap<>();
    String output = new String(promtool.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    promtool.waitFor();
    for (String line : output.lines().toList()) {
      int space = line.indexOf(' ');
      advice.put(line.substring(0, space), line.substring(space + 1));
    }
    String listed = Files.readString(BundledModel.ROOT.resolve("docs/metrics.md"));
    assertThat(advice)
        .allSatisfy((name, text) -> assertThat(listed).contains("| `" + name + "` | " + text + " |"));
  }
}
