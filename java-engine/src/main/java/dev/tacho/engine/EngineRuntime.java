package dev.tacho.engine;

import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.EngineMetricsSource;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.page.EngineLifecycle;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The running engine behind {@link Engine}: its threads, the requests that live, and the order in which all of it ends.
 * Any thread.
 */
final class EngineRuntime {
  private static final Logger LOG = LoggerFactory.getLogger(EngineRuntime.class);
  private static final AtomicInteger ENGINES = new AtomicInteger();
  private static final long SEED_STEP = 0x9E3779B97F4A7C15L;

  private final EngineConfig config;
  private final EngineParts parts;
  private final Mailbox.Limits mailboxLimits;
  private final EngineMetricsSource metrics;
  private final Inbox inbox = new Inbox();
  private final AdmissionGate gate;
  private final Scheduler scheduler;
  private final EngineLoop loop;
  private final Thread engineThread;
  private final Thread outputThread;
  private final Map<String, Generation> live = new ConcurrentHashMap<>();
  private final AtomicLong freshSeed;
  private final AtomicBoolean outputFailed = new AtomicBoolean();
  private volatile EngineState state = EngineState.STARTING;
  private volatile @Nullable Throwable death;

  private final AtomicBoolean closing = new AtomicBoolean();
  private final CountDownLatch closed = new CountDownLatch(1);
  private final ReentrantLock drainLock = new ReentrantLock();
  private final Condition drainChanged = drainLock.newCondition();
  private long drainDeadlineNanos = Long.MAX_VALUE;

  /**
   * Starts the threads.
   *
   * @param config how the engine is set up
   * @param parts the loaded model; closed here, also if this constructor fails
   * @param registry where metrics are published; null for a registry of its own
   * @param mailboxLimits when a reader counts as slow
   */
  EngineRuntime(
      EngineConfig config, EngineParts parts, @Nullable MetricsRegistry registry, Mailbox.Limits mailboxLimits) {
    this.config = config;
    this.parts = parts;
    this.mailboxLimits = mailboxLimits;
    freshSeed = new AtomicLong(config.seed());
    try (CloseStack opened = new CloseStack()) {
      opened.push(parts);
      metrics = opened.push(EngineMetricsSource.open(metricsOptions(config, parts, registry)));
      gate = new AdmissionGate(config, metrics.counters());
      RequestTable requests = new RequestTable();
      EventRecorder recorder =
          new EventRecorder(metrics.engineWriter(), metrics.counters(), requests, parts.slidingWindow());
      scheduler = new Scheduler(parts.schedulerConfig(), parts.pool(), recorder);
      OutputQueue queue = new OutputQueue();
      loop = new EngineLoop(inbox, queue, scheduler, parts.runner(), requests, recorder, this::engineStateChanged);
      OutputProcessor output =
          new OutputProcessor(
              queue,
              metrics.outputWriter(),
              parts.codec(),
              inbox,
              gate,
              this::forget,
              this::outputFailed);
      int number = ENGINES.getAndIncrement();
      engineThread = Thread.ofPlatform().daemon().name("tacho-engine-" + number).unstarted(loop);
      outputThread =
          Thread.ofPlatform()
              .daemon()
              .name("tacho-output-" + number)
              .unstarted(
                  () -> {
                    output.run();
                    refuseRest();
                  });
      opened.release();
    }
    enter(EngineState.RUNNING);
    outputThread.start();
    engineThread.start();
  }

  private static EngineMetricsOptions metricsOptions(
      EngineConfig config, EngineParts parts, @Nullable MetricsRegistry registry) {
    EngineInfo info = parts.info();
    EngineMetricsOptions.Builder options =
        EngineMetricsOptions.builder(info.modelName(), info.maxModelLen())
            .logStats(!config.disableLogStats())
            .logInterval(config.logStatsInterval())
            .cacheConfig(cacheConfig(config, info));
    if (parts.shape() != null) {
      options.modelShape(parts.shape()).mfuMetrics(config.enableMfuMetrics());
    }
    if (registry != null) {
      options.registry(registry);
    }
    return options.build();
  }

  /** Labels of {@code vllm:cache_config_info}, values as Python shows them. */
  private static Map<String, String> cacheConfig(EngineConfig config, EngineInfo info) {
    Map<String, String> labels = new LinkedHashMap<>();
    labels.put(EngineOption.BLOCK_SIZE.key(), config.text(EngineOption.BLOCK_SIZE));
    labels.put("cache_dtype", config.kvCacheDtype());
    labels.put(EngineOption.ENABLE_PREFIX_CACHING.key(), config.enablePrefixCaching() ? "True" : "False");
    labels.put("num_gpu_blocks", String.valueOf(info.numKvBlocks()));
    labels.put(EngineOption.NUM_GPU_BLOCKS_OVERRIDE.key(), orNone(config.text(EngineOption.NUM_GPU_BLOCKS_OVERRIDE)));
    labels.put("kv_cache_memory_bytes", String.valueOf(info.kvCache().bytes()));
    return labels;
  }

  private static String orNone(String text) {
    return text.isEmpty() ? "None" : text;
  }

  // ---- requests

  /** See {@link Engine#submit}. */
  Generation submit(GenerationRequest request) {
    checkOpen();
    enter(request);
    String given = request.requestId();
    String id = given == null ? "req-" + UUID.randomUUID() : given;
    Generation generation = new Generation(id, request, System.nanoTime(), mailboxLimits, this::abort);
    if (live.putIfAbsent(id, generation) != null) {
      gate.leave(request.sampling().n());
      throw new InvalidRequestException("request_id", "'" + id + "' is in use by a request that is not finished");
    }
    List<Integer> ids = request.promptTokenIds();
    if (ids == null) {
      TextPool.execute(() -> prepare(generation));
    } else {
      prepare(generation);
    }
    return generation;
  }

  private void enter(GenerationRequest request) {
    try {
      gate.enter(request.sampling().n());
    } catch (OverloadedException e) {
      LOG.debug("{}: a request is refused: {}", info().modelName(), e.getMessage());
      throw e;
    }
  }

  /** Waits for the end of a request. */
  Completion await(GenerationHandle handle) {
    try {
      return handle.completion().get();
    } catch (InterruptedException e) {
      handle.cancel();
      Thread.currentThread().interrupt();
      throw new CancellationException("interrupted while waiting for request " + handle.requestId());
    } catch (ExecutionException e) {
      if (e.getCause() instanceof EngineException known) {
        throw known;
      }
      throw new RequestFailedException(handle.requestId(), e.getCause() == null ? e : e.getCause());
    }
  }

  /** Tokenizes the prompt, checks it and hands the request to the engine; what is wrong ends this request alone. */
  private void prepare(Generation generation) {
    long queuedTokens = 0;
    try {
      int[] ids = promptIds(generation.request());
      int maxTokens = checkedMaxTokens(generation.sampling(), ids.length);
      generation.prepare(ids, records(generation, ids, maxTokens));
      long tokens = (long) ids.length * generation.records().length;
      gate.queue(tokens);
      queuedTokens = tokens;
      if (generation.abortCause() != null) {
        turnAway(generation, queuedTokens, null);
      } else if (inbox.put(Command.add(generation))) {
        generation.submitted();
      } else {
        turnAway(generation, queuedTokens, closedException());
      }
    } catch (EngineException e) {
      turnAway(generation, queuedTokens, e);
    } catch (RuntimeException | Error e) {
      turnAway(generation, queuedTokens, new RequestFailedException(generation.requestId(), e));
    }
  }

  /** Ends a request that has passed the gate and not entered the inbox. */
  private void turnAway(Generation generation, long queuedTokens, @Nullable EngineException cause) {
    gate.dequeue(queuedTokens);
    gate.leave(generation.sampling().n());
    refuse(generation, cause);
  }

  private int[] promptIds(GenerationRequest request) {
    List<Integer> given = request.promptTokenIds();
    if (given == null) {
      int[] ids = parts.codec().encode(request.promptText() == null ? "" : request.promptText());
      if (ids.length == 0) {
        throw new InvalidRequestException("prompt", "must have at least one token; this text has none");
      }
      return ids;
    }
    int[] ids = toArray(given);
    int vocabSize = parts.codec().vocabSize();
    for (int i = 0; i < ids.length; i++) {
      if (ids[i] < 0 || ids[i] >= vocabSize) {
        throw new InvalidRequestException(
            "prompt", "token id " + ids[i] + " at position " + i + " is not in [0, " + vocabSize + ")");
      }
    }
    return ids;
  }

  /** Output tokens at most; as the OpenAI API documents it, prompt and {@code max_tokens} must fit together. */
  private int checkedMaxTokens(SamplingParams sampling, int promptTokens) {
    int limit = parts.info().maxModelLen();
    if (promptTokens >= limit) {
      throw new PromptTooLongException(promptTokens, limit);
    }
    int left = limit - promptTokens;
    if (sampling.maxTokens() == SamplingParams.UNTIL_CONTEXT_END) {
      return left;
    }
    if (sampling.maxTokens() > left) {
      throw new InvalidRequestException(
          "max_tokens",
          sampling.maxTokens()
              + " and the prompt's "
              + promptTokens
              + " tokens are more than the context length (max_model_len) of "
              + limit
              + " tokens; at most "
              + left
              + " are left for the output");
    }
    return sampling.maxTokens();
  }

  private RequestRecord[] records(Generation generation, int[] promptIds, int maxTokens) {
    SamplingParams sampling = generation.sampling();
    TextCodec codec = parts.codec();
    long seed = sampling.seed().isPresent() ? sampling.seed().getAsLong() : freshSeed.getAndAdd(SEED_STEP);
    RequestRecord[] records = new RequestRecord[sampling.n()];
    for (int i = 0; i < records.length; i++) {
      String id = records.length == 1 ? generation.requestId() : i + "_" + generation.requestId();
      SequenceOutput output =
          new SequenceOutput(codec.stream(promptIds), new StopStringFilter(sampling.stop()), sampling.minTokens());
      SamplerState sampler = new SamplerState(sampling, codec.eosTokenIds(), seed + i);
      records[i] = new RequestRecord(generation, i, id, sampler, maxTokens, output);
    }
    return records;
  }

  /** Ends a request that the engine has not got. */
  private void refuse(Generation generation, @Nullable EngineException cause) {
    if (cause != null) {
      generation.fail(cause);
    }
    if (forget(generation)) {
      generation.complete(System.nanoTime());
    }
  }

  /** Ends what the engine has not ended, once its threads do no more: requests on their way, or lost by a fault. */
  private void refuseRest() {
    for (Generation generation : live.values()) {
      refuse(generation, closedException());
    }
  }

  private void abort(Generation generation) {
    // An inbox that refuses has been closed, and its closing ends the request.
    var _ = inbox.put(Command.abort(generation));
  }

  /** Takes a request out of the live ones; true once. */
  private boolean forget(Generation generation) {
    boolean removed = live.remove(generation.requestId(), generation);
    if (removed && closing.get()) {
      signalDrain();
    }
    return removed;
  }

  // ---- questions

  EngineMetrics metrics() {
    return new EngineMetrics(metrics);
  }

  /** Sequences that the engine has taken in so far. */
  long accepted() {
    return metrics.counters().get(EngineCounter.ACCEPTED);
  }

  /** Sequences that were taken in and have not ended, by the running totals. */
  long unfinished() {
    CounterPage counters = metrics.counters();
    return accepted()
        - counters.get(EngineCounter.FINISHED_STOP)
        - counters.get(EngineCounter.FINISHED_LENGTH)
        - counters.get(EngineCounter.FINISHED_ABORT)
        - counters.get(EngineCounter.FINISHED_ERROR)
        - counters.get(EngineCounter.FINISHED_REPETITION);
  }

  /** Sequences in the scheduler. Engine thread. */
  int scheduled() {
    return scheduler.numRunning() + scheduler.numWaiting() + scheduler.numDeferred();
  }

  /** See {@link Engine#explain}. */
  Optional<RequestExplanation> explain(String requestId) {
    checkOpen();
    Generation generation = live.get(requestId);
    return generation == null
        ? Optional.empty()
        : Optional.of(ask((scheduler, nanos) -> new RequestExplainer(scheduler, generation).explain()));
  }

  /** See {@link Engine#resetPrefixCache}. */
  boolean resetPrefixCache() {
    checkOpen();
    return ask((scheduler, nanos) -> scheduler.resetPrefixCache(false, nanos));
  }

  private <T> T ask(EngineQuestion.Answer<T> answer) {
    EngineQuestion<T> question = new EngineQuestion<>(answer);
    if (!inbox.put(Command.ask(question))) {
      throw closedException();
    }
    return question.await();
  }

  EngineState state() {
    return state;
  }

  EngineConfig config() {
    return config;
  }

  EngineInfo info() {
    return parts.info();
  }

  List<Integer> encode(String text) {
    checkOpen();
    int[] ids = TextPool.call(() -> parts.codec().encode(text));
    List<Integer> list = new ArrayList<>(ids.length);
    for (int id : ids) {
      list.add(id);
    }
    return List.copyOf(list);
  }

  String decode(List<Integer> ids) {
    checkOpen();
    int[] array = toArray(ids);
    return TextPool.call(() -> parts.codec().decode(array));
  }

  private static int[] toArray(List<Integer> ids) {
    return ids.stream().mapToInt(Integer::intValue).toArray();
  }

  private void checkOpen() {
    if (!state.accepts()) {
      throw closedException();
    }
  }

  private EngineException closedException() {
    Throwable cause = death;
    return cause == null ? new EngineClosedException() : new EngineDeadException(cause);
  }

  // ---- states

  private void enter(EngineState next) {
    state = next;
    metrics.lifecycle(EngineLifecycle.valueOf(next.name()));
  }

  /** Engine thread. */
  private void engineStateChanged(EngineState next, @Nullable Throwable cause) {
    if (next == EngineState.DEAD) {
      death = cause;
    }
    if (next == EngineState.DEAD || !closing.get()) {
      enter(next);
    }
    if (cause != null) {
      log(next, cause);
    }
  }

  /** Logs on a thread of its own: an appender is foreign code, which may wait. */
  private void log(EngineState next, Throwable cause) {
    try {
      Thread.startVirtualThread(() -> LOG.error("engine {} is {}", info().modelName(), next.label(), cause));
    } catch (OutOfMemoryError e) {
      // The state and the requests' exceptions say it too, and they come first.
      cause.addSuppressed(e);
    }
  }

  /** Output thread: the first failure is survived, the second ends the engine. */
  private void outputFailed(Throwable cause) {
    if (outputFailed.compareAndSet(false, true)) {
      engineStateChanged(EngineState.DEGRADED, cause);
    } else {
      loop.kill(cause);
    }
  }

  // ---- the end

  /** See {@link Engine#close(Duration)}. */
  void close(Duration drain) {
    long deadline = System.nanoTime() + Math.clamp(TimeUnit.NANOSECONDS.convert(drain), 0, Long.MAX_VALUE / 4);
    boolean first = closing.compareAndSet(false, true);
    if (first && state != EngineState.DEAD) {
      enter(EngineState.DRAINING);
    }
    shortenDrain(deadline);
    if (first) {
      awaitDrain();
      end();
    } else {
      awaitUninterruptibly(closed);
    }
  }

  private void end() {
    loop.close();
    join(engineThread);
    join(outputThread);
    refuseRest();
    enter(EngineState.CLOSED);
    try (CloseStack rest = new CloseStack()) {
      rest.push(closed::countDown);
      rest.push(parts);
      rest.push(metrics);
    }
  }

  /** The shortest drain that anybody asked for counts. */
  private void shortenDrain(long deadline) {
    drainLock.lock();
    try {
      if (drainDeadlineNanos == Long.MAX_VALUE || deadline - drainDeadlineNanos < 0) {
        drainDeadlineNanos = deadline;
        drainChanged.signalAll();
      }
    } finally {
      drainLock.unlock();
    }
  }

  private void signalDrain() {
    drainLock.lock();
    try {
      drainChanged.signalAll();
    } finally {
      drainLock.unlock();
    }
  }

  private void awaitDrain() {
    drainLock.lock();
    try {
      long left = drainDeadlineNanos - System.nanoTime();
      while (left > 0 && !live.isEmpty() && state != EngineState.DEAD) {
        var _ = drainChanged.awaitNanos(left);
        left = drainDeadlineNanos - System.nanoTime();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      drainLock.unlock();
    }
  }

  private static void join(Thread thread) {
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    boolean interrupted = false;
    while (latch.getCount() > 0) {
      try {
        latch.await(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
