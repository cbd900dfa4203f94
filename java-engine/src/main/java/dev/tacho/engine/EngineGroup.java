package dev.tacho.engine;

import dev.tacho.engine.kernel.Operation;
import dev.tacho.engine.model.OperationCounters;
import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.perf.DevicePeaks;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The engines behind one {@link Engine}: one, or several that share the weights (data parallel), each with its own
 * scheduler, KV cache, threads and metrics label. Any thread.
 */
final class EngineGroup {
  private final EngineConfig config;
  private final LoadedModel model;
  private final RequestIntake intake;
  private final MetricsRegistry registry;
  private final List<EngineRuntime> engines;
  private final LoadBalancer balancer;
  private final SleepControl sleep;
  private final @Nullable PeakWatch peaks;
  private final ReentrantLock closing = new ReentrantLock();
  private boolean modelClosed;

  /**
   * Starts the engines.
   *
   * @param config how they are set up
   * @param model closed with the group, also if this constructor fails
   * @param registry where metrics are published; null for a registry of their own
   * @param plugIns further loggers of statistics
   * @param mailboxLimits when a reader counts as slow
   */
  EngineGroup(
      EngineConfig config,
      LoadedModel model,
      @Nullable MetricsRegistry registry,
      List<StatLoggerFactory> plugIns,
      Mailbox.Limits mailboxLimits) {
    this.config = config;
    this.model = model;
    this.registry = registry == null ? MetricsRegistry.create() : registry;
    intake = new RequestIntake(config, model.codec(), model.info().maxModelLen());
    CounterPage refusals = new CounterPage();
    EngineMetricsSetup metrics = new EngineMetricsSetup(config, model, this.registry, plugIns);
    EngineRuntime.Shared shared =
        new EngineRuntime.Shared(
            intake,
            new AdmissionGate(config, refusals),
            ConcurrentHashMap.newKeySet(),
            config.speculativeConfig().orElse(null),
            mailboxLimits,
            config.logWaitingAfter());
    List<EngineRuntime> started = new ArrayList<>();
    int owned = 0;
    try {
      List<EngineMetricsOptions> options = new ArrayList<>();
      for (int rank = 0; rank < model.engines().size(); rank++) {
        // Refusals are counted once for all engines, on the page of the first.
        options.add(metrics.options(rank, rank == 0 ? refusals : new CounterPage()));
      }
      for (int rank = 0; rank < model.engines().size(); rank++) {
        owned = rank + 1;
        started.add(
            new EngineRuntime(model.engines().get(rank), shared, options.get(rank), metrics.recording()));
      }
    } catch (Throwable failure) {
      abandon(started, owned, failure);
      throw failure;
    }
    engines = List.copyOf(started);
    balancer = new LoadBalancer(engines);
    sleep = new SleepControl(engines, model.weights());
    config.devicePeaks().ifPresent(this::peaksFound);
    boolean wanted = config.enableMfuMetrics() && !config.disableLogStats() && config.devicePeaks().isEmpty();
    peaks = wanted && model.peakBench() != null ? watch(model.peakBench()) : null;
  }

  /**
   * Closes what there is after an engine could not be started; it has closed itself.
   *
   * @param started those that were
   * @param owned parts of the first so many are an engine's own
   */
  private void abandon(List<EngineRuntime> started, int owned, Throwable failure) {
    try (CloseStack rest = new CloseStack()) {
      rest.push(model);
      for (int i = owned; i < model.engines().size(); i++) {
        rest.push(model.engines().get(i));
      }
      started.forEach(engine -> rest.push(() -> engine.close(Duration.ZERO)));
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  private PeakWatch watch(PeakBench bench) {
    PeakWatch watch =
        new PeakWatch(
            bench,
            PeakCache.ofUser(System.getenv()),
            PeakWatch.IDLE,
            EngineLoad::allIdle,
            this::peaksFound);
    Thread.ofPlatform().daemon().name("tacho-peaks").start(watch);
    return watch;
  }

  private void peaksFound(DevicePeaks found) {
    engines.forEach(engine -> engine.metrics().device().peaks(found));
  }

  // ---- requests

  /** See {@link Engine#submit}. */
  Generation submit(GenerationRequest request) {
    return balancer.pick(request.dataParallelRank()).submit(request);
  }

  /** See {@link Engine#explain}. */
  Optional<RequestExplanation> explain(String requestId) {
    checkOpen();
    for (EngineRuntime engine : engines) {
      Optional<RequestExplanation> explanation = engine.explain(requestId);
      if (explanation.isPresent()) {
        return explanation;
      }
    }
    return Optional.empty();
  }

  /** See {@link Engine#resetPrefixCache}. */
  boolean resetPrefixCache() {
    checkOpen();
    boolean all = true;
    for (EngineRuntime engine : engines) {
      all &= engine.resetPrefixCache();
    }
    return all;
  }

  List<Integer> encode(String text) {
    checkOpen();
    return intake.encode(text);
  }

  String decode(List<Integer> ids) {
    checkOpen();
    return intake.decode(ids);
  }

  /** Fails if none accepts requests. */
  private void checkOpen() {
    balancer.pick(OptionalInt.empty()).checkOpen();
  }

  // ---- what was computed

  /** See {@link Engine#operatorWork}. */
  List<OperatorWork> operatorWork() {
    List<OperatorWork> work = new ArrayList<>();
    for (Operation operation : Operation.values()) {
      if (operation == Operation.WEIGHT_PACK) {
        continue;
      }
      OperatorWork sum = new OperatorWork(operation.name().toLowerCase(Locale.ROOT), 0, 0, 0, 0);
      for (EngineParts parts : model.engines()) {
        OperationCounters more = parts.runner().counters(operation);
        sum =
            new OperatorWork(
                sum.operator(),
                sum.calls() + more.calls(),
                sum.nanos() + more.nanos(),
                sum.bytes() + more.readBytes() + more.writeBytes(),
                sum.flops() + more.flops());
      }
      work.add(sum);
    }
    return work;
  }

  /** See {@link Engine#measurePeaks}. */
  Optional<DevicePeaks> measurePeaks() {
    checkOpen();
    PeakBench bench = model.peakBench();
    if (config.devicePeaks().isPresent() || bench == null) {
      return config.devicePeaks();
    }
    PeakBench.Measurement measured = bench.measure(() -> !EngineLoad.allIdle());
    if (measured == null) {
      return Optional.empty();
    }
    if (peaks != null) {
      peaksFound(measured.peaks());
      peaks.raise(measured.peaks());
    }
    return Optional.of(measured.peaks());
  }

  // ---- sleep

  /** See {@link Engine#sleep(int, SleepMode)}, {@link Engine#wake(java.util.Set)} and {@link Engine#isSleeping()}. */
  SleepControl sleep() {
    return sleep;
  }

  // ---- what there is

  EngineConfig config() {
    return config;
  }

  EngineInfo info() {
    return model.info();
  }

  EngineMetrics metrics() {
    return new EngineMetrics(registry);
  }

  /** The engines, by rank. */
  List<EngineRuntime> engines() {
    return engines;
  }

  /** The state of all; if they differ, that of those that accept requests, DEGRADED where one does not. */
  EngineState state() {
    EngineState first = engines.getFirst().state();
    boolean allAlike = true;
    boolean anyAccepts = false;
    EngineState other = first;
    for (EngineRuntime engine : engines) {
      EngineState state = engine.state();
      allAlike &= state == first;
      anyAccepts |= state.accepts();
      other = state == EngineState.DEAD ? other : state;
    }
    if (allAlike) {
      return first;
    }
    return anyAccepts ? EngineState.DEGRADED : other;
  }

  /** See {@link Engine#close(Duration)}. */
  void close(Duration drain) {
    if (peaks != null) {
      peaks.close();
    }
    sleep.refuse();
    List<Thread> others = new ArrayList<>();
    for (EngineRuntime engine : engines.subList(1, engines.size())) {
      others.add(Thread.startVirtualThread(() -> engine.close(drain)));
    }
    engines.getFirst().close(drain);
    others.forEach(EngineRuntime::join);
    sleep.close();
    closing.lock();
    try {
      if (!modelClosed) {
        modelClosed = true;
        model.close();
      }
    } finally {
      closing.unlock();
    }
  }
}
