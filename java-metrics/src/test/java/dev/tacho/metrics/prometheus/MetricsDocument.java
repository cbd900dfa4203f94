package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.prometheus.MetricFamily.Question;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Renders docs/metrics.md from the catalog that the code itself uses. */
final class MetricsDocument {
  private static final String INTRO = """
      # Metrics

      Every family that an engine publishes on `/metrics` and in `EngineMetrics.exposition()`, what each is for, and
      where the numbers differ from vLLM's. This page is made from the table that the code itself uses,
      `MetricCatalog`; a test fails when the two differ and says how to write the page anew.

      Names that begin with `vllm:` follow the release VERSION of vLLM: names, types, labels, buckets, meaning.
      Dashboards, alerts and routers that were made for it find what they look for. Names that begin with `tacho:` are
      our own. The families of the JVM (`jvm_*`, `process_*`) and whatever an application registers itself come after
      these.

      How to read the tables:

      - A **counter** is listed as it is exposed and queried, with `_total`; OpenMetrics `TYPE` lines leave that out.
      - A **histogram** `NAME` gives `NAME_bucket`, `NAME_sum` and `NAME_count`; its bounds are listed at the end.
      - `model_name` is the first served name, `engine` the engine's index in decimal. A family with the label
        `engine` has one set of children an engine, and nothing is summed; without it, the engines of a model share
        one.
      - Every child is there with 0 from the moment that its engine joins, unless the row says otherwise.
      - With `disable-log-stats` only the families marked *always* stay.
      - Numbers are read from events that the engine's threads write into rings. A scrape drains the rings first, so
        what happened before the scrape is in it, up to the first step whose outputs are not picked up yet.
      - Every scrape balances: `tacho:requests_accepted_total` less the sum of `vllm:request_success_total` over its
        reasons is `vllm:num_requests_running` plus `vllm:num_requests_waiting`. A sequence that a stop string ended
        counts when the engine lets it go, at most one step after its caller has read the end.
      - In OpenMetrics the buckets of `vllm:time_to_first_token_seconds`, `vllm:inter_token_latency_seconds` and
        `vllm:e2e_request_latency_seconds` carry exemplars: the id of the request that was last found there, of each
        step's outputs the one that took longest. Ids are cut after 64 bytes. The engine does nothing for it but to
        write the id once a request.

      ## Where the time to a first token went

      `vllm:time_to_first_token_seconds` is the sum of four, each with a histogram of its own:

      | from | to | family |
      |---|---|---|
      | arrival | the scheduler has the sequence (tokenised, the step before ended) | `tacho:request_frontend_seconds` |
      | there | its first step is planned | `vllm:request_queue_time_seconds` |
      | there | the step ends that brings its first token | `vllm:request_prefill_time_seconds` |
      | there | the output thread picks the token up | `tacho:output_delivery_seconds{output="first"}` |

      Queue and prefill are observed when the sequence ends, the other two with its first token. The engine's thread
      takes what came between two steps: a front end that takes long while others run means long steps (a smaller
      `max-num-batched-tokens` makes them shorter), not a slow tokenizer. What comes after the pick-up, the socket and
      the client, is in none of them; `http_request_duration_seconds` has it.

      """;

  /** What, there, here. */
  private static final List<List<String>> DIFFERENCES = List.of(
      List.of("Events count when they happen",
          "An event waits inside its request and counts with the request's next output; if there is none, it "
              + "never counts.",
          "A preemption, an abort or a change of the queues is on the next page that is scraped, or if a step is "
              + "being handed over, on the one after that step."),
      List.of("A client goes away",
          "Nothing is counted.",
          "`vllm:request_success_total{finished_reason=\"abort\"}` counts the sequence. No latency is "
              + "observed: it has none that would compare with the others'."),
      List.of("All requests are aborted at once",
          "Running, waiting and KV usage keep their last values until a request comes.",
          "They are 0 on the next page."),
      List.of("A sequence is queued again after it was scheduled",
          "Its queue time is first scheduled minus last queued, and may be negative.",
          "Its queue time was settled when it was first scheduled."),
      List.of("A sequence is preempted and then aborted",
          "The preemption may be lost.",
          "It is counted."),
      List.of("`Preemptions:` and `Corrupted:` in the log line",
          "Never shown, because the sums are cleared before they are read.",
          "Shown when there were any."),
      List.of("Adapters that are no longer used",
          "Each set of adapters that was ever in use stays a series.",
          "The set in use is the only series."),
      List.of("Colons in OpenMetrics",
          "Turned into `_` unless the scraper asks for `escaping=allow-utf-8`.",
          "A colon stays a colon."),
      List.of("One engine of several joins or leaves",
          "Building a logger removes every `vllm:` family of the process.",
          "The families of the others stay as they are."));

  private static final String DOCUMENTED = """
      ## What looks wrong and is not

      - `vllm:time_to_first_token_seconds_count` may exceed the number of finished requests: it counts first outputs,
        also those of sequences that still run or that were aborted later.
      - `vllm:iteration_tokens_total` is a histogram, in spite of its name; `rate(vllm:iteration_tokens_total_sum[5m])`
        is the tokens a second.
      - With n sequences a request, most families count sequences: a request with a prompt of 10 tokens and n = 4 adds
        40 to `vllm:prompt_tokens_total` and 4 to `vllm:e2e_request_latency_seconds_count`, but 1 to
        `vllm:request_params_n_count`.
      - `vllm:kv_cache_usage_perc` is a ratio in [0, 1] in spite of its name. A block that is cached but not referred to
        is free: with a warm cache and no request the value is 0.
      - `vllm:inter_token_latency_seconds` has one observation for each output, not for each token; an output of three
        tokens after 30 ms is one observation of 30 ms.
      - The prompt tokens of a chunked prefill are counted with the first output, not chunk by chunk.
      - After a loss of events (`tacho:events_lost_total`) tokens, preemptions and ends by reason follow the totals that
        the engine keeps beside its events and stay exact; histograms and cache counters lack what was lost.
      - Prefix cache hits are counted at admission, `vllm:prompt_tokens_cached_total` at the first output: the two
        differ by what was admitted and has no output yet.

      """;

  private static final String PROCESSES = """
      ## Other processes

      With `--metrics-directory DIRECTORY` (in the SDK `EngineMetricsOptions.directory`) an engine keeps its page and
      its rings in files there, readable by its own user alone. `scripts/tacho-metrics DIRECTORY` serves `/metrics` on
      port 9464 from the pages of every process that publishes there, also while one is too busy to answer. A process
      brings its pages up to date every 100 ms, and when it is scraped itself. Engines of different model names or
      indexes stand side by side; where processes share both, counters and histograms are summed, gauges are those of
      the process that wrote last, and `vllm:lora_requests_info` is summed over those with the same adapters.
      Exemplars stay in the process.
      Pages of dead processes are left out and deleted. The rings of the last process of each engine that died stay,
      until another one of that engine dies: `FlightRecorder` reads them, every event since a ring last wrapped and all
      that was not read, also after the process was killed. A line in the sidecar's log says when a process is gone,
      and which rings are kept. The directory must exist when the sidecar starts.

      The sidecar says of itself:

      | family | type | labels | unit | what it says |
      |---|---|---|---|---|
      | `tacho:sidecar_processes` | gauge | | processes | Processes whose pages it read for this answer. |
      | `tacho:sidecar_processes_gone_total` | counter | `end`: closed, died | processes | Those no longer read. |

      `increase(tacho:sidecar_processes_gone_total{end="died"}[10m]) > 0` is worth an alert. A process that begins and
      dies between two scrapes is not seen.

      """;

  private static final String SERVER = """
      ### The HTTP server

      Requests to the routes `/metrics`, `/health`, `/load`, `/ping`, `/version` and `/server_info` do not count; one
      that a server does not have counts as any other unknown path, under the handler `none`. A handler is a
      route, not a path, so that the series stay few.

      | family | type | labels | unit | what it says |
      |---|---|---|---|---|
      | `http_requests_total` | counter | `method`, `status`: 2xx, 3xx, 4xx, 5xx, `handler` | requests | Answers. |
      | `http_request_size_bytes` | summary | `handler` | bytes | Content-Length of requests, 0 without. |
      | `http_response_size_bytes` | summary | `handler` | bytes | Content-Length of responses, 0 for streams. |
      | `http_request_duration_highr_seconds` | histogram | | seconds | Request to end of response, 21 bounds. |
      | `http_request_duration_seconds` | histogram | `method`, `handler` | seconds | The same, 3 bounds. |
      | `vllm:tool_call_parser_invocations_total` | counter | `model_name`, `mode`, `outcome`, `request_type` | | |
      | `vllm:sleep_mode_operation_duration_seconds` | histogram | `operation`: SLEEP | seconds | Calls that ended. |
      | `vllm:sleep_mode_operations_in_flight` | gauge | `operation` | calls | Calls that have not. |
      | `vllm:rl_weight_update_operation_duration_seconds` | histogram | `operation`: UPDATE | seconds | As above. |
      | `vllm:rl_weight_update_operations_in_flight` | gauge | `operation` | calls | As above. |

      The families of operations come with the first call of such a route.

      """;

  private static final String NAMES = """
      ## Names and the number of series

      Names come from outside: of models, adapters, tiers, routes. However odd or many they are, the series stay few:

      - `model_name` has one value an engine. Quotes, backslashes and line ends are escaped, everything else goes out
        as UTF-8; a lone surrogate becomes `?`.
      - Adapters make one series an engine, whose labels name those in use, at most ADAPTERS of them, then `...`.
      - `source`, `reason`, `finished_reason` and the like have the values listed above and no other: a cache source
        that a connector does not attribute counts as `external_unspecified`, an unknown request type as `other`.
      - `tier` has the names that the engine announced when it joined, `worker` and `position` as many numbers as it
        said; reports of others are dropped.
      - `handler` is a route; `method` is one of the methods of HTTP, any other word counts as `OTHER`.

      """;

  private static final String WAYS_OUT = """
      ## Other ways out

      - An application's own simpleclient registry: `MetricsRegistry.of(registry)` shows the families there, and what
        else is registered in it (the JVM's families, Micrometer's simpleclient registry, the application's own) goes
        out on our page, after ours, in the same form.
      - client_java 1.x, as Spring Boot uses it: `TachoMultiCollector.register(metrics, prometheusRegistry)` of
        `tacho-integrations`. Names keep their colon in both text forms; counts are written without `.0` and families
        are sorted by name. Releases that reserve the ends `_total` and `_info` (1.3 does, 1.10 does not) show
        `vllm:iteration_tokens_total` and the `_info` gauges without that end.
      - In the process: `MetricsRegistry.snapshot()` has every value, typed, with estimates of quantiles.
      - Anything else: a `StatLogger`, given to `Engine.open` or, with the SDK alone, to
        `EngineMetricsOptions.Builder.plugIn`, or provided as a service; it runs on a thread of its own,
        and how far it is behind is `tacho:stat_logger_lag`.

      """;

  private MetricsDocument() {}

  /** The whole page. */
  static String render() {
    StringBuilder page = new StringBuilder();
    page.append(INTRO.replace("VERSION", MetricCatalog.FOLLOWS));
    page.append("## Families\n\n");
    for (Question question : Question.values()) {
      families(page, question);
    }
    page.append(SERVER.replace("SLEEP", String.join(", ", OperationMetrics.Routes.SLEEP_MODE.operations()))
        .replace("UPDATE", String.join(", ", OperationMetrics.Routes.WEIGHT_UPDATE.operations())));
    buckets(page);
    differences(page);
    page.append(DOCUMENTED);
    names(page);
    work(page);
    page.append(PROCESSES);
    recipes(page);
    page.append(WAYS_OUT);
    advice(page);
    return page.toString();
  }

  private static void families(StringBuilder page, Question question) {
    List<MetricFamily> rows =
        MetricCatalog.families().stream().filter(family -> family.question() == question).toList();
    page.append("### ").append(question.text()).append("\n\n");
    page.append("| family | type | labels | unit | what it says | moves |\n|---|---|---|---|---|---|\n");
    for (MetricFamily family : rows) {
      page.append("| `").append(family.exposedName()).append("` | ").append(family.type().text());
      BucketFamily buckets = family.buckets();
      if (buckets != null) {
        page.append(", buckets `").append(buckets.option()).append('`');
      }
      page.append(" | ").append(labels(family)).append(" | ").append(family.unit()).append(" | ").append(family.help());
      if (!family.gate().text().isEmpty()) {
        page.append(" *").append(family.gate().text()).append(".*");
      }
      if (family.onFirstUse()) {
        page.append(" *No series before the first report.*");
      }
      page.append(" | ").append(family.moves().text()).append(" |\n");
    }
    page.append('\n');
  }

  private static String labels(MetricFamily family) {
    List<String> names = family.labels().stream().map(name -> "`" + name + "`").collect(Collectors.toList());
    if (!family.values().isEmpty()) {
      int last = names.size() - 1;
      names.set(last, names.get(last) + ": " + String.join(", ", family.values()));
    }
    return String.join(", ", names);
  }

  private static void names(StringBuilder page) {
    page.append(NAMES.replace("ADAPTERS", Integer.toString(PrometheusStatLogger.MAX_ADAPTER_NAMES)));
  }

  private static void work(StringBuilder page) {
    page.append("""
        ## Estimated and counted work

        `vllm:estimated_*` follow vLLM's formulas: no causal half, a row of logits for every prompt, keys and values of
        a prompt read once at activation size, weights of the unembedding at the model's size. `tacho:counted_*` add up
        what kernels did: the causal part alone, rows of logits that were needed, keys and values read once for 32
        queries, norms and rotations included. For a dense model of 16 layers (hidden 2048, 32 heads, 8 KV heads,
        feed-forward 8192, vocabulary 128256; 2 bytes an element), estimate ÷ counted:

        | step | FLOPs | bytes read | bytes written |
        |---|---|---|---|
        """);
    WorkComparison.rows().forEach(row -> page.append("| ").append(String.join(" | ", row)).append(" |\n"));
    page.append('\n');
  }

  private static void buckets(StringBuilder page) {
    page.append("### Buckets\n\n| name | upper bounds, the infinite one left out |\n|---|---|\n");
    for (BucketFamily family : BucketFamily.values()) {
      page.append("| `").append(family.option()).append("` | ");
      if (family == BucketFamily.REQUEST_TOKENS) {
        page.append("1, 2, 5, 10, 20, 50, ... up to the longest context");
      } else {
        page.append(Arrays.stream(family.bounds(1)).mapToObj(MetricsDocument::number)
            .collect(Collectors.joining(", ")));
      }
      page.append(" |\n");
    }
    page.append('\n');
  }

  private static String number(double bound) {
    return bound == Math.rint(bound) ? Long.toString((long) bound) : Double.toString(bound);
  }

  private static void differences(StringBuilder page) {
    page.append("""
        ## Where the numbers differ from vLLM's on purpose

        Each is a place where the other behaviour misleads whoever reads it.

        | what | vLLM %s | here |
        |---|---|---|
        """.formatted(MetricCatalog.FOLLOWS));
    for (List<String> row : DIFFERENCES) {
      page.append("| ").append(String.join(" | ", row)).append(" |\n");
    }
    page.append("""

        Families of parts that an engine on the JVM does not have are left out: those of the KV connectors Mooncake,
        HF3FS, HiSparse and UMBP, of websocket connections, and of the Python interpreter (`python_*`), in whose place
        the JVM's stand.

        """);
  }

  private static void recipes(StringBuilder page) {
    page.append("""
        ## Recipes

        PromQL, ready to paste. A counter's name carries `_total`; without it a query returns nothing.

        | question | query |
        |---|---|
        """);
    for (Map.Entry<String, String> recipe : PromqlRecipes.all().entrySet()) {
      page.append("| ").append(recipe.getKey()).append(" | `").append(recipe.getValue().replace("|", "\\|"))
          .append("` |\n");
    }
    page.append("""

        Ratios and gauges are averaged over engines or listed by engine, never summed: two engines at half their
        capacity are not one at full capacity.

        """);
  }

  private static void advice(StringBuilder page) {
    page.append("""
        ## What promtool says

        `promtool check metrics` advises against the names that vLLM chose. They are kept, as dashboards look for them.
        Everything that it says about our page is in this table.

        | name | advice |
        |---|---|
        """);
    for (Map.Entry<String, String> line : adviceLines()) {
      page.append("| `").append(line.getKey()).append("` | ").append(line.getValue()).append(" |\n");
    }
  }

  /** What {@code promtool check metrics} says about a page with every family, sorted: name and advice. */
  static List<Map.Entry<String, String>> adviceLines() {
    List<Map.Entry<String, String>> lines = new ArrayList<>();
    for (MetricFamily family : MetricCatalog.families()) {
      String name = family.exposedName();
      if (name.contains(":")) {
        lines.add(Map.entry(name, "metric names should not contain ':'"));
      }
      if (family.type() != MetricFamily.Type.COUNTER && name.endsWith("_total")) {
        lines.add(Map.entry(name, "non-counter metrics should not have \"_total\" suffix"));
      }
    }
    for (OperationMetrics.Routes routes : OperationMetrics.Routes.values()) {
      lines.add(Map.entry(routes.durationName(), "metric names should not contain ':'"));
      lines.add(Map.entry(routes.inFlightName(), "metric names should not contain ':'"));
    }
    lines.add(Map.entry(ToolParserMetrics.NAME, "metric names should not contain ':'"));
    lines.sort(Map.Entry.<String, String>comparingByKey().thenComparing(Map.Entry.comparingByValue()));
    return lines;
  }
}
