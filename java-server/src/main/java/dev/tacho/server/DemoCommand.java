package dev.tacho.server;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * {@code tacho demo}: streams a few completions at the same time from a running server, sentence by sentence, then
 * shows what {@code /metrics} says of them. Fails if the counters moved by another number of tokens than were streamed.
 */
@Command(
    name = "demo",
    description = "Streams a few stories at once from a running server and shows what its /metrics says of them.",
    sortOptions = false)
final class DemoCommand implements Callable<Integer> {
  private static final List<String> PROMPTS =
      List.of("Once upon a time", "One day", "In the garden", "A little bird", "The old bear", "Tom and Lily");

  /** Families whose lines tell the story, in the order in which they are shown. */
  private static final List<String> SHOWN =
      List.of(
          "vllm:prompt_tokens_total",
          "vllm:generation_tokens_total",
          "vllm:request_success_total",
          "vllm:time_to_first_token_seconds_count",
          "vllm:time_to_first_token_seconds_sum",
          "vllm:inter_token_latency_seconds_count",
          "vllm:inter_token_latency_seconds_sum",
          "vllm:e2e_request_latency_seconds_count",
          "vllm:e2e_request_latency_seconds_sum",
          "vllm:num_requests_running",
          "vllm:num_requests_waiting",
          "vllm:kv_cache_usage_perc",
          "vllm:estimated_flops_per_gpu_total",
          "vllm:estimated_read_bytes_per_gpu_total",
          "vllm:estimated_write_bytes_per_gpu_total");

  private static final String DATA = "data: ";

  @Spec private CommandSpec spec;

  @Option(names = "--url", paramLabel = "URL", description = "the server (default ${DEFAULT-VALUE})")
  private URI url = URI.create("http://127.0.0.1:8000");

  @Option(
      names = "--max-tokens",
      paramLabel = "N",
      description = "tokens of a story at most (default ${DEFAULT-VALUE})")
  private int maxTokens = 160;

  private record Tokens(int prompt, int generated) {}

  @Override
  public Integer call() throws IOException, InterruptedException {
    PrintWriter out = spec.commandLine().getOut();
    try (HttpClient client = HttpClient.newHttpClient()) {
      Map<String, Double> before = metrics(client);
      double mostRunning = 0;
      double mostKvUsed = 0;
      out.printf("%n%d stories at the same time, a sentence a line; [n] says of which story it is%n%n", PROMPTS.size());
      List<CompletableFuture<Tokens>> stories = new ArrayList<>();
      for (int i = 0; i < PROMPTS.size(); i++) {
        int index = i;
        stories.add(CompletableFuture.supplyAsync(() -> stream(client, index, out), Thread::startVirtualThread));
      }
      CompletableFuture<Void> all = CompletableFuture.allOf(stories.toArray(CompletableFuture[]::new));
      while (!all.isDone()) {
        Map<String, Double> now = metrics(client);
        mostRunning = Math.max(mostRunning, sum(now, "vllm:num_requests_running"));
        mostKvUsed = Math.max(mostKvUsed, sum(now, "vllm:kv_cache_usage_perc"));
      }
      int prompt = 0;
      int generated = 0;
      for (CompletableFuture<Tokens> story : stories) {
        Tokens tokens = Futures.join(story);
        prompt += tokens.prompt();
        generated += tokens.generated();
      }
      Map<String, Double> after = metrics(client);
      out.println();
      out.println("what " + url + "/metrics says:");
      SHOWN.forEach(family -> show(after, family, out));
      out.printf(
          "while they ran: up to %.0f running, %.2f %% of the KV cache in use%n", mostRunning, 100 * mostKvUsed);
      double countedPrompt = delta(before, after, "vllm:prompt_tokens_total");
      double countedGenerated = delta(before, after, "vllm:generation_tokens_total");
      boolean agree = countedPrompt == prompt && countedGenerated == generated;
      out.printf(
          "%nstreamed %d prompt and %d generated tokens; counted %.0f and %.0f: %s%n",
          prompt, generated, countedPrompt, countedGenerated, agree ? "they agree" : "THEY DIFFER");
      out.flush();
      return agree ? 0 : 1;
    }
  }

  /** Streams one story; prints it a sentence a line, with its number in front. */
  private Tokens stream(HttpClient client, int index, PrintWriter out) {
    ObjectNode body = Json.object();
    body.put("prompt", PROMPTS.get(index));
    body.put("max_tokens", maxTokens);
    body.put("temperature", 0.6);
    body.put("seed", 100 + index);
    body.put("stream", true);
    body.putObject("stream_options").put("include_usage", true);
    HttpRequest request =
        HttpRequest.newBuilder(url.resolve("/v1/completions"))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofByteArray(Json.bytes(body)))
            .build();
    Sentences sentences = new Sentences("[" + (index + 1) + "] ", PROMPTS.get(index), out);
    try {
      HttpResponse<Stream<String>> response = client.send(request, HttpResponse.BodyHandlers.ofLines());
      checkStatus(response);
      JsonNode usage = Json.object();
      try (Stream<String> lines = response.body()) {
        for (String line : (Iterable<String>) lines::iterator) {
          if (line.startsWith(DATA) && !line.endsWith("[DONE]")) {
            JsonNode piece = Json.readObject(line.substring(DATA.length()).getBytes(StandardCharsets.UTF_8));
            if (piece.has("error")) {
              throw new CommandFailedException(url + " failed: " + piece.get("error").get("message").asText());
            }
            sentences.add(piece.at("/choices/0/text").asText(""));
            usage = piece.path("usage");
          }
        }
      }
      sentences.end();
      return new Tokens(usage.path("prompt_tokens").asInt(), usage.path("completion_tokens").asInt());
    } catch (IOException e) {
      throw new CommandFailedException(url + ": " + e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new CommandFailedException("interrupted");
    }
  }

  /** Series of the page by name with labels, in alphabetical order. */
  private Map<String, Double> metrics(HttpClient client) throws IOException, InterruptedException {
    HttpResponse<Stream<String>> response;
    try {
      response =
          client.send(
              HttpRequest.newBuilder(url.resolve("/metrics")).build(), HttpResponse.BodyHandlers.ofLines());
    } catch (java.net.ConnectException e) {
      throw new CommandFailedException("no server at " + url + ": start one with tacho serve");
    }
    checkStatus(response);
    Map<String, Double> series = new TreeMap<>();
    try (Stream<String> lines = response.body()) {
      lines
          .filter(line -> !line.startsWith("#") && !line.isBlank())
          .forEach(
              line -> {
                int space = line.lastIndexOf(' ');
                String value = line.substring(space + 1).replace("Inf", "Infinity");
                series.put(line.substring(0, space), Double.valueOf(value));
              });
    }
    return series;
  }

  private static void checkStatus(HttpResponse<Stream<String>> response) {
    if (response.statusCode() != 200) {
      throw new CommandFailedException(
          response.uri() + " answered " + response.statusCode() + ": " + String.join(" ", response.body().toList()));
    }
  }

  private static void show(Map<String, Double> series, String family, PrintWriter out) {
    series.forEach(
        (name, value) -> {
          if (belongs(name, family)) {
            boolean whole = value == Math.rint(value) && Math.abs(value) < 1e15;
            out.println("  " + name + " " + (whole ? String.format("%.0f", value) : String.format("%.6g", value)));
          }
        });
  }

  private static boolean belongs(String name, String family) {
    return name.equals(family) || name.startsWith(family + "{");
  }

  private static double sum(Map<String, Double> series, String family) {
    return series.entrySet().stream()
        .filter(entry -> belongs(entry.getKey(), family))
        .mapToDouble(Map.Entry::getValue)
        .sum();
  }

  private static double delta(Map<String, Double> before, Map<String, Double> after, String family) {
    return sum(after, family) - sum(before, family);
  }

  /** Gathers text and prints it whenever a sentence is complete. One thread at a time. */
  private static final class Sentences {
    private final String prefix;
    private final PrintWriter out;
    private final StringBuilder pending;

    Sentences(String prefix, String begin, PrintWriter out) {
      this.prefix = prefix;
      this.out = out;
      this.pending = new StringBuilder(begin);
    }

    void add(String text) {
      for (int i = 0; i < text.length(); i++) {
        char c = text.charAt(i);
        if (c == '\n' || (Character.isWhitespace(c) && endsSentence())) {
          end();
        } else {
          pending.append(c);
        }
      }
    }

    private boolean endsSentence() {
      return !pending.isEmpty() && ".!?\"".indexOf(pending.charAt(pending.length() - 1)) >= 0;
    }

    void end() {
      if (!pending.isEmpty()) {
        out.println(prefix + pending.toString().strip());
        out.flush();
        pending.setLength(0);
      }
    }
  }
}
