package dev.tacho.engine.simulation;

import dev.tacho.engine.InvalidRequestException;
import dev.tacho.engine.PromptTooLongException;
import dev.tacho.engine.SamplingParams;
import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.sampling.SamplerState;
import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.engine.scheduler.SchedulerConfig;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepOutputs;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import java.util.Arrays;
import java.util.Set;
import java.util.function.IntConsumer;

/**
 * Replays a trace through the real scheduler and block pool on virtual time: a step takes what the cost model says, its
 * tokens are there at its end, and the next one begins then. Nothing is computed. One run; one thread.
 *
 * <p>Arrivals enter the scheduler's queue up to twice as many as can run; the rest waits outside, as numbers. The queue
 * is first come, first served, so no decision depends on them.
 */
public final class Simulation {
  private static final long NO_TOKEN = -1;
  private static final int STEPS_BETWEEN_REPORTS = 4096;

  private final RequestTrace trace;
  private final CostModel cost;
  private final Scheduler scheduler;
  private final SimulationCounts counts = new SimulationCounts();
  private final StepResult result = new StepResult();
  private final StepOutputs outputs = new StepOutputs();
  private final TimeHistogram timeToFirstToken = new TimeHistogram();
  private final TimeHistogram interTokenLatency = new TimeHistogram();
  private final TimeHistogram endToEnd = new TimeHistogram();
  private final SamplerState sampler =
      new SamplerState(
          SamplingParams.greedy().withIgnoreEos(true).withMaxTokens(SamplingParams.UNTIL_CONTEXT_END), Set.of(), 0);
  private final int maxQueued;

  // When the sequence in a slot got its last token; the free slots.
  private long[] lastTokenNanos = new long[64];
  private int[] freeSlots = new int[64];
  private int numFreeSlots;
  private int numSlots;

  private long now;
  private int next;
  private int arrived;
  private int finished;
  private long steps;
  private long busyNanos;
  private long decodeTokens;
  private long prefillTokens;
  private long promptTokens;
  private long outputTokens;
  private double usageNanos;
  private double runningNanos;
  private double peakUsage;
  private int peakRunning;
  private int peakWaiting;

  /**
   * @param trace requests
   * @param config the scheduler's; synchronous, first come, first served
   * @param pool blocks, all free
   * @param cost what steps take
   */
  public Simulation(RequestTrace trace, SchedulerConfig config, KvBlockPool pool, CostModel cost) {
    this.trace = trace;
    this.cost = cost;
    scheduler = new Scheduler(config, pool, counts);
    maxQueued = 2 * Math.min(config.maxNumSeqs(), trace.size());
  }

  /**
   * Runs to the end of the last request.
   *
   * @param progress is told the number of requests that have ended, now and then
   * @throws IllegalArgumentException if the context or the KV cache can never hold a request; names it by its number,
   *     counted from 1
   */
  public SimulationReport run(IntConsumer progress) {
    long begin = trace.size() == 0 ? 0 : trace.arrivalNanos(0);
    now = begin;
    while (next < trace.size() || scheduler.hasUnfinished()) {
      if (!scheduler.hasUnfinished()) {
        now = Math.max(now, trace.arrivalNanos(next));
      }
      takeArrivals();
      step();
      if (steps % STEPS_BETWEEN_REPORTS == 0) {
        progress.accept(finished);
      }
    }
    progress.accept(finished);
    double busy = Math.max(1, busyNanos);
    return new SimulationReport(
        finished,
        (now - begin) / 1e9,
        busyNanos / 1e9,
        steps,
        decodeTokens,
        prefillTokens,
        promptTokens,
        counts.cachedTokens,
        outputTokens,
        counts.preemptions,
        usageNanos / busy,
        peakUsage,
        runningNanos / busy,
        peakRunning,
        peakWaiting,
        counts.queueTime.times(),
        timeToFirstToken.times(),
        interTokenLatency.times(),
        endToEnd.times());
  }

  private void takeArrivals() {
    while (arrived < trace.size() && trace.arrivalNanos(arrived) <= now) {
      arrived++;
    }
    while (next < arrived && scheduler.numWaiting() < maxQueued) {
      int[] prompt = trace.prompt(next);
      Sequence sequence =
          Sequence.builder("r" + next, prompt, sampler)
              .slot(takeSlot(), next)
              .arrivalNanos(trace.arrivalNanos(next))
              .maxTokens(trace.outputTokens(next))
              .build();
      try {
        scheduler.add(sequence, now);
      } catch (PromptTooLongException | InvalidRequestException e) {
        throw new IllegalArgumentException("request " + (next + 1) + ": " + e.getMessage(), e);
      }
      promptTokens += prompt.length;
      next++;
    }
    peakWaiting = Math.max(peakWaiting, scheduler.numWaiting() + arrived - next);
  }

  private int takeSlot() {
    int slot = numFreeSlots > 0 ? freeSlots[--numFreeSlots] : numSlots++;
    if (slot == lastTokenNanos.length) {
      lastTokenNanos = Arrays.copyOf(lastTokenNanos, slot * 2);
      freeSlots = Arrays.copyOf(freeSlots, slot * 2);
    }
    lastTokenNanos[slot] = NO_TOKEN;
    return slot;
  }

  private void step() {
    StepPlan plan = scheduler.schedule(now);
    if (plan.numTokens() == 0) {
      throw new IllegalStateException("nothing can run, though " + scheduler.numWaiting() + " sequences wait");
    }
    int decodes = CostModel.decodes(plan);
    long nanos = cost.nanos(plan, decodes);
    double usage = scheduler.pool().usage();
    usageNanos += usage * nanos;
    peakUsage = Math.max(peakUsage, usage);
    runningNanos += (double) scheduler.numRunning() * nanos;
    peakRunning = Math.max(peakRunning, scheduler.numRunning());
    now += nanos;
    busyNanos += nanos;
    steps++;
    result.reset();
    for (int i = 0; i < plan.numSequences(); i++) {
      result.nextSequence();
      if (plan.samples(i)) {
        // Its own, so that nothing but the trace's prefixes is found in the prefix cache.
        result.addToken(plan.sequence(i).generation(), null);
      }
    }
    decodeTokens += decodes;
    prefillTokens += plan.numTokens() - decodes;
    scheduler.update(plan, result, now, outputs);
    for (int i = 0; i < outputs.size(); i++) {
      tokenArrived(outputs.sequence(i), outputs.finishReason(i) != null);
    }
    outputTokens += outputs.numTokens();
  }

  private void tokenArrived(Sequence sequence, boolean ends) {
    int slot = sequence.slot();
    long last = lastTokenNanos[slot];
    if (last == NO_TOKEN) {
      timeToFirstToken.record(now - sequence.arrivalNanos());
    } else {
      interTokenLatency.record(now - last);
    }
    lastTokenNanos[slot] = now;
    if (ends) {
      endToEnd.record(now - sequence.arrivalNanos());
      freeSlots[numFreeSlots++] = slot;
      finished++;
    }
  }
}
