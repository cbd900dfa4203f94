package dev.tacho.engine;

import dev.tacho.engine.sampling.NgramProposer;
import dev.tacho.engine.scheduler.PauseState;
import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.EngineMetricsSource;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.page.EngineLifecycle;
import dev.tacho.metrics.stats.MemoryArea;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One running engine of an {@link EngineGroup}: its threads, the requests that live, and the order in which all of it
 * ends. Any thread.
 */
final class EngineRuntime {
  private static final Logger LOG = LoggerFactory.getLogger(EngineRuntime.class);
  /** How often it is asked whether a request has waited long. */
  private static final Duration LOOK = Duration.ofSeconds(1);

  private static final AtomicInteger ENGINES = new AtomicInteger();

  private final EngineParts parts;
  private final Shared shared;
  private final EngineLoad load = new EngineLoad();
  private final EngineMetricsSource metrics;
  private final Inbox inbox = new Inbox();
  private final AdmissionGate gate;
  private final Scheduler scheduler;
  // Engine thread.
  private final PreemptionWatch preemptions;
  private final EngineLoop loop;
  private final Thread engineThread;
  private final Thread outputThread;
  private final Map<String, Generation> live = new ConcurrentHashMap<>();
  private final AtomicBoolean outputFailed = new AtomicBoolean();
  private final EngineStates states;
  private final AtomicBoolean closing = new AtomicBoolean();
  private final CountDownLatch closed = new CountDownLatch(1);
  private final Drain drain = new Drain();

  /**
   * What the engines of a group have in common.
   *
   * @param intake makes requests ready
   * @param gate refuses requests when there are too many
   * @param requestIds ids of the requests that are not finished
   * @param speculation how drafts are made; null for none
   * @param mailboxLimits when a reader counts as slow
   * @param logWaitingAfter after what time in the queue the log says why, and how often at most; 0 for never
   */
  record Shared(
      RequestIntake intake,
      AdmissionGate gate,
      Set<String> requestIds,
      @Nullable SpeculativeConfig speculation,
      Mailbox.Limits mailboxLimits,
      Duration logWaitingAfter) {
    @Nullable NgramProposer proposer(int maxModelLen) {
      return speculation == null ? null : speculation.proposer(maxModelLen);
    }
  }

  /**
   * Starts the threads.
   *
   * @param parts what it runs on; closed here, also if this constructor fails
   * @param shared what it shares with the other engines of its group
   * @param metricsOptions how its metrics are published
   * @param recording what is recorded beside the usual
   */
  EngineRuntime(
      EngineParts parts, Shared shared, EngineMetricsOptions metricsOptions, EventRecorder.Options recording) {
    this.parts = parts;
    this.shared = shared;
    gate = shared.gate();
    try (CloseStack opened = new CloseStack()) {
      opened.push(parts);
      metrics = opened.push(join(metricsOptions));
      states =
          new EngineStates(
              info().modelName(), state -> metrics.lifecycle(EngineLifecycle.valueOf(state.name())));
      metrics.device().counters(new RunnerCounters(parts.runner(), metrics.counters()));
      metrics.device().memory(MemoryArea.SCRATCH, info().workspace().bytes());
      weightsHeld(true);
      cacheHeld(true);
      RequestTable requests = new RequestTable();
      EventRecorder recorder =
          new EventRecorder(
              metrics.engineWriter(), metrics.counters(), requests, load, parts.slidingWindow(), recording);
      recorder.watchResidency(parts.pool());
      preemptions = recorder.preemptions();
      scheduler = new Scheduler(parts.schedulerConfig(), parts.pool(), recorder);
      OutputQueue queue = new OutputQueue();
      NgramProposer proposer = shared.proposer(info().maxModelLen());
      loop =
          new EngineLoop(
              inbox, queue, scheduler, parts.runner(), requests, recorder, proposer, states::enter);
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
                    load.close();
                  });
      opened.release();
    }
    load.open();
    states.enter(EngineState.RUNNING);
    outputThread.start();
    engineThread.start();
    Duration limit = shared.logWaitingAfter();
    if (!limit.isZero()) {
      watch("tacho-waiting-", limit.compareTo(LOOK) < 0 ? limit : LOOK, limit, () -> longWait(limit));
      watch("tacho-preempted-", limit, limit, this::repeatedPreemptions);
    }
  }

  private void watch(String name, Duration look, Duration rest, Supplier<@Nullable String> question) {
    Consumer<String> log = line -> LOG.warn("engine {}: {}", info().modelName(), line);
    Thread.ofVirtual().name(name + info().modelName()).start(new EngineWatch(look, rest, closed, question, log));
  }

  private static EngineMetricsSource join(EngineMetricsOptions options) {
    try {
      return EngineMetricsSource.open(options);
    } catch (UncheckedIOException e) {
      ConfigurationException failure =
          new ConfigurationException(EngineOption.METRICS_DIRECTORY.optionName(), String.valueOf(e.getMessage()));
      failure.initCause(e);
      throw failure;
    }
  }

  // ---- requests

  /** See {@link Engine#submit}. */
  Generation submit(GenerationRequest request) {
    checkOpen();
    enter(request);
    String given = request.requestId();
    String id = given == null ? "req-" + UUID.randomUUID() : given;
    if (!shared.requestIds().add(id)) {
      gate.leave(request.sampling().n());
      throw new InvalidRequestException("request_id", "'" + id + "' is in use by a request that is not finished");
    }
    Generation generation =
        new Generation(id, request, System.nanoTime(), shared.mailboxLimits(), this::abort);
    live.put(id, generation);
    load.submitted(request.sampling().n());
    if (request.promptTokenIds() == null) {
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

  /** Tokenizes the prompt, checks it and hands the request to the engine; what is wrong ends this request alone. */
  private void prepare(Generation generation) {
    try {
      gate.queue(shared.intake().prepare(generation));
      generation.admitted();
      if (inbox.put(Command.add(generation))) {
        generation.entered();
      } else {
        turnAway(generation, states.closedException());
      }
    } catch (EngineException e) {
      turnAway(generation, e);
    } catch (RuntimeException | Error e) {
      turnAway(generation, new RequestFailedException(generation.requestId(), e));
    }
  }

  /** Ends a request that has passed the gate and not entered the inbox. */
  private void turnAway(Generation generation, EngineException cause) {
    if (generation.isAdmitted()) {
      generation.leave(gate);
    } else {
      gate.leave(generation.sampling().n());
    }
    refuse(generation, cause);
  }

  /** Ends a request that the engine has not got. */
  private void refuse(Generation generation, EngineException cause) {
    generation.fail(cause);
    if (forget(generation)) {
      generation.complete(System.nanoTime());
    }
  }

  /** Ends what the engine has not ended, once its threads do no more: requests on their way, or lost by a fault. */
  private void refuseRest() {
    for (Generation generation : live.values()) {
      if (generation.isAdmitted()) {
        // The others are on their way: whoever brings them finds the inbox closed and turns them away.
        generation.leave(gate);
      }
      refuse(generation, states.closedException());
    }
  }

  private void abort(Generation generation) {
    // An inbox that refuses has been closed, and its closing ends the request.
    var _ = inbox.put(Command.abort(generation));
  }

  /** Takes a request out of the live ones; true once. */
  private boolean forget(Generation generation) {
    boolean removed = live.remove(generation.requestId(), generation);
    if (removed) {
      shared.requestIds().remove(generation.requestId());
      load.ended(generation.sampling().n());
    }
    if (removed && closing.get()) {
      drain.changed();
    }
    return removed;
  }

  // ---- questions

  EngineMetricsSource metrics() {
    return metrics;
  }

  /** Nanoseconds for which the workers had no step between two although there was something to compute. */
  long bubbleNanos() {
    return metrics.counters().get(EngineCounter.BUBBLE_NANOS);
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
    Generation generation = live.get(requestId);
    return generation == null
        ? Optional.empty()
        : Optional.of(ask((scheduler, nanos) -> new RequestExplainer(scheduler, generation).explain()));
  }

  /** Why requests wait, if one of them has waited so long, else null. */
  @Nullable String longWait(Duration limit) {
    if (unfinished() == 0) {
      return null;
    }
    return ask((scheduler, nanos) -> Optional.ofNullable(LongWait.describe(scheduler, nanos, limit))).orElse(null);
  }

  /** That sequences were preempted again and again since this was asked before, else null. */
  @Nullable String repeatedPreemptions() {
    return ask((scheduler, nanos) -> Optional.ofNullable(preemptions.look(scheduler, nanos))).orElse(null);
  }

  /** See {@link Engine#resetPrefixCache}. */
  boolean resetPrefixCache() {
    checkOpen();
    return ask((scheduler, nanos) -> scheduler.resetPrefixCache(false, nanos));
  }

  private <T> T ask(EngineQuestion.Answer<T> answer) {
    EngineQuestion<T> question = new EngineQuestion<>(answer);
    if (!inbox.put(Command.ask(question))) {
      throw states.closedException();
    }
    return question.await();
  }

  EngineState state() {
    return states.state();
  }

  /** See {@link EngineStates#checkOpen}. */
  void checkOpen() {
    states.checkOpen();
  }

  EngineInfo info() {
    return parts.info();
  }

  EngineLoad load() {
    return load;
  }

  /** Output thread: the first failure is survived, the second ends the engine. */
  private void outputFailed(Throwable cause) {
    if (outputFailed.compareAndSet(false, true)) {
      states.enter(EngineState.DEGRADED, cause);
    } else {
      loop.kill(cause);
    }
  }

  // ---- sleep; SleepControl's thread

  /** Holds back admissions or everything, from the next step on. */
  void pause(PauseState pause) {
    var _ =
        ask(
            (scheduler, nanos) -> {
              scheduler.setPause(pause);
              return true;
            });
  }

  /** Ends all requests. */
  void abortAll(String cause) {
    live.values().forEach(generation -> generation.abort(cause));
  }

  /** Waits until nothing computes, then empties the KV cache and gives its memory up, if that is asked for. */
  void suspend(boolean discardCache, SleepMode mode) {
    if (discardCache && mode == SleepMode.KEEP) {
      var _ = ask((scheduler, nanos) -> scheduler.resetPrefixCache(true, nanos));
    }
    boolean quiet;
    do {
      // Each question waits for the step under way, so this turns once a step.
      quiet = ask((scheduler, nanos) -> suspendIfQuiet(scheduler, discardCache, mode, nanos));
    } while (!quiet);
  }

  /** Engine thread. */
  private boolean suspendIfQuiet(Scheduler scheduler, boolean discardCache, SleepMode mode, long nanos) {
    if (scheduler.stepInFlight() || (mode != SleepMode.KEEP && scheduler.numRunning() > 0)) {
      return false;
    }
    if (discardCache) {
      if (!scheduler.resetPrefixCache(false, nanos)) {
        throw new IllegalStateException("KV blocks are in use while nothing runs");
      }
      parts.discardCache().run();
    }
    return true;
  }

  /**
   * Says whether the memory of the weights is held. They are counted once for all engines, at the first.
   */
  void weightsHeld(boolean held) {
    if (metrics.options().engineIndex() == 0) {
      metrics.device().memory(MemoryArea.WEIGHTS, held ? info().weights().bytes() : 0);
    }
  }

  private void cacheHeld(boolean held) {
    metrics.device().memory(MemoryArea.KV_CACHE, held ? info().kvCache().bytes() : 0);
  }

  /** Says that it sleeps. */
  void asleep(int level) {
    if (level > 0) {
      cacheHeld(false);
    }
    states.enter(EngineState.SLEEPING);
    metrics.sleepState(true, level);
  }

  /** Goes on. */
  void resume() {
    cacheHeld(true);
    pause(PauseState.UNPAUSED);
    states.awake();
    metrics.sleepState(false, 0);
  }

  // ---- the end

  /** See {@link Engine#close(Duration)}. */
  void close(Duration time) {
    boolean first = closing.compareAndSet(false, true);
    // What it holds back would not end in that time either.
    boolean asleep = state() == EngineState.SLEEPING;
    if (first) {
      states.enter(EngineState.DRAINING);
    }
    drain.shorten(asleep ? Duration.ZERO : time);
    if (first) {
      drain.await(() -> live.isEmpty() || state() == EngineState.DEAD);
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
    load.close();
    states.enter(EngineState.CLOSED);
    try (CloseStack rest = new CloseStack()) {
      rest.push(closed::countDown);
      rest.push(parts);
      rest.push(metrics);
    }
  }

  /** Waits for a thread to end; an interrupt is kept for later. */
  static void join(Thread thread) {
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
