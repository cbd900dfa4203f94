package dev.tacho.metrics.golden;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.metrics.collector.EngineFeed;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.logger.StatLoggerManager;
import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.stats.FinishedRequestStats;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.PromptTokenStats;
import dev.tacho.metrics.stats.Samples;
import dev.tacho.metrics.stats.SchedulerStats;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/** Plays the part of engines and their output threads: writes the steps of a case into rings and drains them. */
final class IntervalReplay {
  private final JsonNode golden;
  private final boolean logStats;
  private final MetricsCollector collector = MetricsCollector.onDemand();
  private final Map<Integer, Engine> engines = new HashMap<>();
  private final Map<String, Request> requests = new HashMap<>();
  private final List<Recorded> recorded = new ArrayList<>();
  private int stopped;
  private int parents;

  IntervalReplay(JsonNode golden) {
    this.golden = golden;
    this.logStats = golden.get("log_stats").asBoolean();
  }

  /** Runs one step of the case and returns what reached the loggers. */
  List<Recorded> run(JsonNode step) {
    recorded.clear();
    stopped = 0;
    switch (step.get("step").asText()) {
      case "add_request" -> add(step);
      case "abort_by_client" -> step.get("request_ids").forEach(id -> abort(id.asText()));
      default -> outputs(step);
    }
    collector.drain();
    return recorded;
  }

  /** Requests that a stop string ended in the last step and that the engine had not ended itself. */
  int stoppedInLastStep() {
    return stopped;
  }

  /** The queue time of a request that was queued again after it was scheduled; it was settled then. */
  OptionalDouble settledQueueSeconds(String requestId) {
    double queued = 0;
    for (JsonNode step : golden.get("steps")) {
      for (JsonNode output : step.path("outputs")) {
        if (output.get("request_id").asText().equals(requestId)) {
          for (JsonNode event : output.get("events")) {
            double at = event.get(1).asDouble();
            switch (event.get(0).asText()) {
              case "QUEUED" -> queued = at;
              case "SCHEDULED" -> {
                return isQueuedLater(requestId, at) ? OptionalDouble.of(at - queued) : OptionalDouble.empty();
              }
              default -> { }
            }
          }
        }
      }
    }
    return OptionalDouble.empty();
  }

  private boolean isQueuedLater(String requestId, double after) {
    for (JsonNode step : golden.get("steps")) {
      for (JsonNode output : step.path("outputs")) {
        for (JsonNode event : output.get("events")) {
          if (output.get("request_id").asText().equals(requestId) && event.get(0).asText().equals("QUEUED")
              && event.get(1).asDouble() > after) {
            return true;
          }
        }
      }
    }
    return false;
  }

  private void add(JsonNode step) {
    String id = step.get("request_id").asText();
    int n = step.get("n").asInt();
    int parent = n > 1 ? ++parents : 0;
    for (int i = 0; i < n; i++) {
      String child = n > 1 ? i + "_" + id : id;
      Request request = new Request(requests.size(), engineOf(child),
          step.get("stop_string_when_output_tokens_reach").asInt(0));
      requests.put(child, request);
      request.engine.events.queued(request.slot, request.generation, nanos(firstQueued(child)),
          nanos(step.get("arrival_time")), step.get("prompt_len").asInt(), step.get("max_tokens").asInt(0), parent, n,
          0);
      request.engine.events.commit();
    }
  }

  /** Aborts a request, or every sequence of a request of several. */
  private void abort(String id) {
    if (!requests.containsKey(id)) {
      List.copyOf(requests.keySet()).stream().filter(child -> child.endsWith("_" + id)).forEach(this::abort);
    }
    Request request = requests.get(id);
    if (request != null && !request.ended) {
      request.ended = true;
      request.engine.events.ended(request.slot, request.generation, FinishReason.ABORT);
      request.engine.events.commit();
    }
  }

  private void outputs(JsonNode step) {
    Engine engine = engine(step.get("engine_index").asInt());
    EventWriter events = engine.events;
    for (JsonNode output : step.get("outputs")) {
      Request request = request(output);
      for (JsonNode event : output.get("events")) {
        long at = nanos(event.get(1));
        switch (event.get(0).asText()) {
          case "SCHEDULED" -> events.scheduled(request.slot, request.generation, at);
          case "PREEMPTED" -> events.preempted(request.slot, request.generation, at);
          default -> {
            if (request.queued) {
              events.queued(request.slot, request.generation, at, 0, 0, 0, 0, 1, 0);
            }
            request.queued = true;
          }
        }
      }
    }
    long number = ++engine.step;
    events.step(number, nanos(step.get("engine_core_timestamp")), 0, step.get("outputs").size(), new StepShape());
    for (JsonNode output : step.get("outputs")) {
      output(events, output, request(output));
    }
    events.commit();
    if (!step.get("outputs").isEmpty()) {
      engine.outputs.pickUp(number, nanos(step.get("wall_time")));
      for (JsonNode output : step.get("outputs")) {
        Request request = request(output);
        request.tokens += output.get("num_new_tokens").asInt();
        if (!request.ended && request.stopAt > 0 && request.tokens >= request.stopAt) {
          engine.outputs.stopped(request.slot, request.generation);
          request.ended = true;
          if (output.get("finish_reason").isNull()) {
            stopped++;
            events.ended(request.slot, request.generation, FinishReason.STOP);
          }
        }
        request.ended |= !output.get("finish_reason").isNull();
      }
      engine.outputs.commit();
      events.commit();
    }
  }

  private void output(EventWriter events, JsonNode output, Request request) {
    if (output.path("error_object").asBoolean()) {
      events.ended(request.slot, request.generation, FinishReason.ERROR);
      request.ended = true;
      return;
    }
    JsonNode prefill = output.get("prefill_stats");
    if (!prefill.isNull()) {
      events.prefillStats(request.slot, request.generation, prefill.get("num_prompt_tokens").asInt(),
          prefill.get("num_local_cached_tokens").asInt(), prefill.get("num_external_cached_tokens").asInt(), 0);
    }
    if (golden.get("compute_nans_in_logits").asBoolean() && output.get("num_nans_in_logits").asInt() > 0) {
      events.corrupted(request.slot, request.generation);
    }
    events.tokens(request.slot, request.generation, output.get("num_new_tokens").asInt());
    if (!output.get("finish_reason").isNull()) {
      events.finished(request.slot, request.generation,
          IntervalGoldenTest.reason(output.get("finish_reason").asText()));
    }
  }

  private Request request(JsonNode output) {
    // One that was never added has a slot too, but nobody hears of it before its outputs.
    return requests.computeIfAbsent(output.get("request_id").asText(), id ->
        new Request(requests.size(), engineOf(id), 0));
  }

  private @Nullable JsonNode firstQueued(String id) {
    for (JsonNode step : golden.get("steps")) {
      for (JsonNode output : step.path("outputs")) {
        for (JsonNode event : output.get("events")) {
          if (output.get("request_id").asText().equals(id) && event.get(0).asText().equals("QUEUED")) {
            return event.get(1);
          }
        }
      }
    }
    return null;
  }

  private Engine engineOf(String id) {
    for (JsonNode step : golden.get("steps")) {
      for (JsonNode output : step.path("outputs")) {
        if (output.get("request_id").asText().equals(id)) {
          return engine(step.get("engine_index").asInt());
        }
      }
    }
    return engine(0);
  }

  private Engine engine(int index) {
    return engines.computeIfAbsent(index, i -> new Engine(i, logStats, collector, recorded));
  }

  private static long nanos(@Nullable JsonNode seconds) {
    return seconds == null ? 0 : Math.round(seconds.asDouble() * 1e9);
  }

  /** The two writers of an engine. */
  private static final class Engine {
    final EventWriter events;
    final EventWriter outputs;
    long step;

    Engine(int index, boolean logStats, MetricsCollector collector, List<Recorded> recorded) {
      if (!logStats) {
        events = EventWriter.disabled();
        outputs = EventWriter.disabled();
        return;
      }
      StatLogger copy = (engine, scheduler, iteration) -> Recorded.add(recorded, scheduler, iteration);
      EngineFeed feed = new EngineFeed(index, null, new StatLoggerManager(List.of(copy), Duration.ZERO, 0),
          report -> { }, new EventRing(), new EventRing());
      collector.join(feed);
      events = feed.engineWriter();
      outputs = feed.outputWriter();
    }
  }

  /** A request of the case. */
  private static final class Request {
    final int slot;
    final int generation;
    final Engine engine;
    final int stopAt;
    int tokens;
    boolean queued;
    boolean ended;

    Request(int number, Engine engine, int stopAt) {
      this.slot = number;
      this.generation = number % 2;
      this.engine = engine;
      this.stopAt = stopAt;
    }
  }

  /** A copy of what a logger got. */
  record Recorded(long generationTokens, long computed, long local, long external, long cached, long total,
      long preemptions, long corrupted, long iterationTokens, List<Double> timesToFirstToken,
      List<Double> interTokenLatencies, List<Double> maxGenerationTokens, List<Double> paramsN,
      List<FinishedRequestStats> finished, Map<FinishReason, Long> endedByReason) {

    static void add(List<Recorded> to, @Nullable SchedulerStats scheduler, @Nullable IterationStats stats) {
      if (stats == null) {
        return;
      }
      Map<FinishReason, Long> ended = new EnumMap<>(FinishReason.class);
      for (FinishReason reason : FinishReason.values()) {
        ended.put(reason, stats.ended(reason));
      }
      PromptTokenStats prompt = stats.promptTokens();
      to.add(new Recorded(stats.generationTokens(), prompt.computed(), prompt.localCacheHit(),
          prompt.externalKvTransfer(), prompt.cached(), prompt.total(), stats.preemptions(),
          stats.corruptedRequests(), stats.iterationTokens(), list(stats.timesToFirstToken()),
          list(stats.interTokenLatencies()), list(stats.maxGenerationTokens()), list(stats.paramsN()),
          List.copyOf(stats.finished()), ended));
    }

    long ended(FinishReason reason) {
      return endedByReason.getOrDefault(reason, 0L);
    }

    private static List<Double> list(Samples samples) {
      return Arrays.stream(samples.toArray()).boxed().toList();
    }
  }
}
