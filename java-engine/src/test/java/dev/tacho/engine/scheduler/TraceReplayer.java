package dev.tacho.engine.scheduler;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.kv.BlockTable;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.kv.KvGroup;
import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.stats.ResidencySampler;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Feeds the operations of a recorded case to our scheduler and describes each result as the recording does. */
final class TraceReplayer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long SECOND_NANOS = 1_000_000_000L;

  private final JsonNode config;
  private final KvBlockPool pool;
  private final Scheduler scheduler;
  private final RecordingListener listener = new RecordingListener();
  private final Map<String, Sequence> sequences = new LinkedHashMap<>();
  private final Map<Integer, StepPlan> plans = new HashMap<>();
  private final Set<String> finishedSinceSchedule = new TreeSet<>();
  private final List<Sequence> failed = new ArrayList<>();
  private final StepOutputs outputs = new StepOutputs();
  private @Nullable ResidencySampler residency;

  TraceReplayer(JsonNode config) {
    this.config = config;
    pool =
        new KvBlockPool(
            config.get("num_gpu_blocks").asInt(),
            config.get("block_size").asInt(),
            config.get("enable_prefix_caching").asBoolean());
    if (config.get("kv_cache_metrics").asBoolean()) {
      residency = new ResidencySampler(pool.numBlocks(), 1, () -> 0);
      pool.watch(residency);
    }
    SchedulerConfig.Builder b = SchedulerConfig.builder();
    b.maxNumBatchedTokens(config.get("max_num_batched_tokens").asInt());
    if (!config.get("max_num_scheduled_tokens").isNull()) {
      b.maxNumScheduledTokens(config.get("max_num_scheduled_tokens").asInt());
    }
    b.maxNumSeqs(config.get("max_num_seqs").asInt());
    if (!config.get("max_num_active_seqs").isNull()) {
      b.maxNumActiveSeqs(config.get("max_num_active_seqs").asInt());
    }
    b.maxModelLen(config.get("max_model_len").asInt());
    b.policy("fcfs".equals(config.get("policy").asText()) ? SchedulingPolicy.FCFS : SchedulingPolicy.PRIORITY);
    b.enableChunkedPrefill(config.get("enable_chunked_prefill").asBoolean());
    b.longPrefillTokenThreshold(config.get("long_prefill_token_threshold").asInt());
    b.adaptiveLongPrefillThreshold(config.get("long_prefill_token_threshold_adaptive").asBoolean());
    b.watermark(config.get("watermark").asDouble());
    b.reserveFullSequence(config.get("scheduler_reserve_full_isl").asBoolean());
    b.guardBlocks(false);
    b.asyncScheduling(config.get("async_scheduling").asBoolean());
    b.numSpeculativeTokens(config.get("num_speculative_tokens").asInt());
    b.maxLoras(config.get("max_loras").asInt());
    b.prefillScheduleInterval(config.get("prefill_schedule_interval").asInt());
    scheduler = new Scheduler(b.build(), pool, groups(config), listener);
  }

  private static List<KvGroup> groups(JsonNode config) {
    if (config.get("sliding_window").isNull()) {
      return List.of(KvGroup.full());
    }
    boolean dense = config.get("prefix_cache_retention_interval").isNull();
    KvGroup window = KvGroup.window(config.get("sliding_window").asInt(), dense);
    return config.get("full_and_sliding_groups").asBoolean() ? List.of(KvGroup.full(), window) : List.of(window);
  }

  /** Executes operation {@code index}; gives what its {@code expect} should say, empty if it has none. */
  ObjectNode execute(int index, JsonNode op) {
    long nanos = index * SECOND_NANOS;
    ObjectNode result = JSON.createObjectNode();
    switch (op.get("op").asText()) {
      case "add" -> {
        Sequence s = sequence(op.get("req"));
        sequences.put(s.requestId(), s);
        scheduler.add(s, nanos);
      }
      case "abort" -> abort(op, nanos, result);
      case "reset_prefix_cache" -> {
        listener.preempted.clear();
        result.put("success", scheduler.resetPrefixCache(op.get("reset_running_requests").asBoolean(), nanos));
        result.set("preempted", strings(listener.preempted));
      }
      case "grammar_ready" -> grammarReady(op);
      case "pause" -> scheduler.setPause(PauseState.valueOf(op.get("pause_state").asText()));
      case "drafts" -> drafts(op, result);
      case "schedule" -> schedule(op, nanos, result);
      case "update" -> update(op, nanos, result);
      default -> throw new IllegalArgumentException("operation " + op.get("op"));
    }
    if (op.has("expect") && op.get("expect").has("state")) {
      result.set("state", state());
    }
    return result;
  }

  /** After the last operation: the pool's own books are right. */
  boolean audit() {
    return scheduler.audit();
  }

  private Sequence sequence(JsonNode req) {
    List<Integer> stopTokenIds = new ArrayList<>();
    req.get("stop_token_ids").forEach(id -> stopTokenIds.add(id.asInt()));
    SamplingParams params =
        SamplingParams.builder()
            .maxTokens(req.get("max_tokens").asInt())
            .minTokens(req.get("min_tokens").asInt())
            .ignoreEos(req.get("ignore_eos").asBoolean())
            .stopTokenIds(stopTokenIds)
            .build();
    SamplerState sampler = new SamplerState(params, Set.of(config.get("eos_token_id").asInt()), 0);
    int[] prompt = JSON.convertValue(req.get("prompt"), int[].class);
    Sequence.Builder b =
        Sequence.builder(req.get("id").asText(), prompt, sampler)
            .priority(req.get("priority").asInt())
            .arrivalNanos((long) (req.get("arrival").asDouble() * SECOND_NANOS))
            .blocked(req.get("waits_for_grammar").asBoolean())
            .prefixLookup(!req.get("skip_reading_prefix_cache").asBoolean())
            .cacheSalt(req.get("cache_salt").isNull() ? "" : req.get("cache_salt").asText())
            .adapterName(req.get("lora").isNull() ? "" : req.get("lora").asText());
    JsonNode repetition = req.get("repetition");
    if (!repetition.isNull()) {
      b.repetition(
          new RepetitionLimit(
              repetition.get("min_pattern_size").asInt(),
              repetition.get("max_pattern_size").asInt(),
              repetition.get("min_count").asInt()));
    }
    return b.build();
  }

  private void grammarReady(JsonNode op) {
    Sequence s = sequences.get(op.get("id").asText());
    if (s != null && op.get("error").asBoolean()) {
      failed.add(s);
    } else if (s != null) {
      scheduler.unblock(s);
    }
  }

  /** The recorded engine ends requests whose grammar has failed with the next output. */
  private void endFailed(long nanos, ArrayNode out) {
    for (Sequence s : failed) {
      String id = s.requestId();
      if (scheduler.abort(s, FinishReason.ERROR, nanos)) {
        ObjectNode ended = out.addObject().put("id", id);
        ended.putArray("tokens");
        ended.put("finish_reason", FinishReason.ERROR.label()).putNull("stop_reason");
        ended.set("events", events(id));
        ended.putNull("prefill_stats");
        sequences.remove(id);
        finishedSinceSchedule.add(id);
      }
    }
    failed.clear();
  }

  private ArrayNode events(String id) {
    ArrayNode events = JSON.createArrayNode();
    for (RecordingListener.Event e : listener.events.getOrDefault(id, List.of())) {
      events.addArray().add(e.name()).add((double) e.nanos() / SECOND_NANOS);
    }
    listener.events.remove(id);
    return events;
  }

  private void abort(JsonNode op, long nanos, ObjectNode result) {
    Set<String> aborted = new TreeSet<>();
    for (JsonNode id : op.get("ids")) {
      Sequence s = sequences.remove(id.asText());
      if (s != null && scheduler.abort(s, FinishReason.ABORT, nanos)) {
        aborted.add(s.requestId());
      }
    }
    finishedSinceSchedule.addAll(aborted);
    result.set("aborted", strings(aborted));
  }

  private void schedule(JsonNode op, long nanos, ObjectNode result) {
    listener.preempted.clear();
    listener.admittedNew.clear();
    listener.admittedAgain.clear();
    Map<String, Integer> tableSizes = new HashMap<>();
    for (Sequence s : scheduler.running()) {
      tableSizes.put(s.requestId(), s.blockTable().size());
    }
    StepPlan plan = scheduler.schedule(nanos);
    plans.put(op.get("step").asInt(), plan);
    listener.admittedNew.forEach(tableSizes::remove);
    listener.admittedAgain.forEach(tableSizes::remove);

    ArrayNode order = result.putArray("order");
    ObjectNode computedBefore = result.putObject("computed_before");
    ObjectNode newBlocks = result.putObject("new_blocks");
    ObjectNode tables = result.putObject("tables");
    ArrayNode samples = result.putArray("samples");
    ObjectNode spec = JSON.createObjectNode();
    for (int i = 0; i < plan.numSequences(); i++) {
      Sequence s = plan.sequence(i);
      order.addArray().add(s.requestId()).add(plan.scheduledTokens(i));
      computedBefore.put(s.requestId(), plan.startPosition(i));
      int before = tableSizes.getOrDefault(s.requestId(), 0);
      if (before == s.blockTable().size()) {
        newBlocks.putNull(s.requestId());
      } else {
        newBlocks.set(s.requestId(), blocks(s, before));
      }
      tables.set(s.requestId(), blocks(s, 0));
      if (plan.samples(i)) {
        samples.add(s.requestId());
      }
      for (int j = 0; j < plan.numDrafts(i); j++) {
        spec.withArray("/" + s.requestId()).add(plan.draft(i, j));
      }
    }
    result.put("total", plan.numTokens());
    result.set("new", strings(listener.admittedNew));
    result.set("resumed", strings(listener.admittedAgain));
    result.set("spec", spec);
    result.set("preempted", strings(listener.preempted));
    result.set("finished_since_last", strings(finishedSinceSchedule));
    finishedSinceSchedule.clear();
  }

  private void drafts(JsonNode op, ObjectNode result) {
    ObjectNode pending = result.putObject("pending");
    op.get("tokens")
        .properties()
        .forEach(
            e -> {
              Sequence s = sequences.get(e.getKey());
              if (s != null) {
                int[] ids = JSON.convertValue(e.getValue(), int[].class);
                scheduler.setDrafts(s, ids, ids.length);
                ArrayNode own = pending.putArray(e.getKey());
                for (int j = 0; j < s.numDrafts(); j++) {
                  own.add(s.drafts[j]);
                }
              }
            });
  }

  private void update(JsonNode op, long nanos, ObjectNode result) {
    StepPlan plan = Objects.requireNonNull(plans.remove(op.get("step").asInt()));
    StepResult tokens = new StepResult();
    for (int i = 0; i < plan.numSequences(); i++) {
      tokens.nextSequence();
      JsonNode sampled = op.get("sampled").path(plan.sequence(i).requestId());
      sampled.forEach(id -> tokens.addToken(id.asInt(), null));
    }
    listener.prefills.clear();
    listener.draftCounts.clear();
    listener.acceptedCounts.clear();
    scheduler.update(plan, tokens, nanos, outputs);
    ArrayNode out = result.putArray("outputs");
    for (int i = 0; i < outputs.size(); i++) {
      out.add(output(i));
    }
    endFailed(nanos, out);
    ObjectNode stats = result.putObject("stats");
    stats.put("running", scheduler.numRunning());
    stats.put("waiting", scheduler.numWaiting());
    stats.put("deferred", scheduler.numDeferred());
    stats.put("kv_cache_usage", pool.usage());
    stats.set("spec", spec());
    if (residency != null) {
      ArrayNode evictions = stats.putArray("kv_evictions");
      residency.drainTo((life, idle, first, second, third) -> add(evictions, life, idle, first, second, third));
    }
    ObjectNode prefix = stats.putObject("prefix");
    prefix.put("reset", listener.reset);
    prefix.put("requests", listener.requests);
    prefix.put("queries", listener.queries);
    prefix.put("hits", listener.hits);
    prefix.put("preempted_requests", listener.preemptedRequests);
    prefix.put("preempted_queries", listener.preemptedQueries);
    prefix.put("preempted_hits", listener.preemptedHits);
    listener.clearPrefixCounts();
  }

  private static void add(ArrayNode evictions, long lifetimeNanos, long idleNanos, long... gapsNanos) {
    ObjectNode eviction = evictions.addObject();
    eviction.put("lifetime", (double) lifetimeNanos / SECOND_NANOS);
    eviction.put("idle", (double) idleNanos / SECOND_NANOS);
    ArrayNode gaps = eviction.putArray("reuse_gaps");
    for (long gap : gapsNanos) {
      if (gap >= 0) {
        gaps.add((double) gap / SECOND_NANOS);
      }
    }
  }

  private JsonNode spec() {
    if (listener.draftCounts.isEmpty()) {
      return JSON.nullNode();
    }
    ObjectNode spec = JSON.createObjectNode();
    spec.put("drafts", listener.draftCounts.size());
    spec.put("draft_tokens", listener.draftCounts.stream().mapToInt(c -> c).sum());
    spec.put("accepted_tokens", listener.acceptedCounts.stream().mapToInt(c -> c).sum());
    spec.set("accepted_per_pos", perPosition(listener.acceptedCounts));
    spec.set("drafted_per_pos", perPosition(listener.draftCounts));
    return spec;
  }

  private ArrayNode perPosition(List<Integer> counts) {
    ArrayNode array = JSON.createArrayNode();
    for (int i = 0; i < config.get("num_speculative_tokens").asInt(); i++) {
      int position = i;
      array.add(counts.stream().filter(c -> c > position).count());
    }
    return array;
  }

  private ObjectNode output(int i) {
    Sequence s = outputs.sequence(i);
    String id = s.requestId();
    ObjectNode out = JSON.createObjectNode();
    out.put("id", id);
    ArrayNode tokens = out.putArray("tokens");
    for (int j = 0; j < outputs.tokenCount(i); j++) {
      tokens.add(outputs.token(i, j));
    }
    FinishReason reason = outputs.finishReason(i);
    if (reason == null) {
      out.putNull("finish_reason");
    } else {
      out.put("finish_reason", reason.label());
      finishedSinceSchedule.add(id);
      sequences.remove(id);
    }
    if (outputs.stopTokenId(i) != Sequence.NO_STOP_TOKEN) {
      out.put("stop_reason", outputs.stopTokenId(i));
    } else if (reason == FinishReason.REPETITION) {
      out.put("stop_reason", "repetition_detected");
    } else {
      out.putNull("stop_reason");
    }
    out.set("events", events(id));
    RecordingListener.Prefill prefill = listener.prefills.get(id);
    if (prefill == null) {
      out.putNull("prefill_stats");
    } else {
      ObjectNode stats = out.putObject("prefill_stats");
      stats.put("prompt", prefill.prompt());
      stats.put("computed", prefill.prompt() - prefill.localCached() - prefill.externalCached());
      stats.put("cached", prefill.localCached() + prefill.externalCached());
      stats.put("local", prefill.localCached());
      stats.put("cache_creation", prefill.cacheCreation());
    }
    return out;
  }

  private ObjectNode state() {
    ObjectNode state = JSON.createObjectNode();
    state.set("running", strings(scheduler.running().stream().map(Sequence::requestId).toList()));
    state.set("waiting", strings(waiting(s -> true).toList()));
    state.putArray("kv_holding");
    state.set("deferred", strings(waiting(s -> s.deferred).sorted().toList()));
    state.put("free", pool.numFree());
    ArrayNode freeList = state.putArray("free_list");
    for (int block : pool.freeList()) {
      freeList.add(block);
    }
    ArrayNode hashed = state.putArray("hashed");
    ArrayNode shared = state.putArray("shared");
    for (int block = 1; block < pool.numBlocks(); block++) {
      if (pool.isCached(block)) {
        hashed.add(block);
      }
      if (pool.references(block) > 1) {
        shared.addArray().add(block).add(pool.references(block));
      }
    }
    state.put("usage", pool.usage());
    ObjectNode reqs = state.putObject("reqs");
    for (Sequence s : sequences.values()) {
      ArrayNode columns = reqs.putArray(s.requestId());
      String status = s.state() == SequenceState.BLOCKED ? "WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR" : s.state().name();
      columns.add(status).add(s.computedTokens()).add(s.length()).add(s.outputLength());
      columns.add(s.progress().placeholders).add(s.inFlightTokens()).add(s.progress().staleTokens);
      columns.add(s.numPreemptions()).add(s.numDrafts());
    }
    return state;
  }

  private Stream<String> waiting(Predicate<Sequence> which) {
    return scheduler.waiting().stream().filter(which).map(Sequence::requestId);
  }

  /** Blocks of each group from one on; all groups have equally many. */
  private static ArrayNode blocks(Sequence s, int from) {
    ArrayNode groups = JSON.createArrayNode();
    for (int g = 0; g < s.blocks().numGroups(); g++) {
      BlockTable table = s.blocks().table(g);
      ArrayNode blocks = groups.addArray();
      for (int i = from; i < table.size(); i++) {
        blocks.add(table.block(i));
      }
    }
    return groups;
  }

  private static ArrayNode strings(Collection<String> strings) {
    ArrayNode array = JSON.createArrayNode();
    strings.forEach(array::add);
    return array;
  }
}
