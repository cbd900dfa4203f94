package dev.tacho.engine;

import dev.tacho.engine.model.ModelRunner;
import dev.tacho.engine.model.StepHandle;
import dev.tacho.engine.sampling.NgramProposer;
import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepOutputs;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;
import dev.tacho.metrics.event.FinishReason;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The engine thread: takes requests and aborts from the inbox, plans a step, has it computed, records it and hands its
 * tokens to the output thread, over and over; it waits when there is nothing to do. It owns the scheduler and
 * everything below it, runs no foreign code, logs nothing and allocates nothing in a step of running sequences.
 *
 * <p>With asynchronous scheduling two steps are in flight: while step k computes, step k+1 is planned with placeholders
 * for the tokens of step k and launched behind it, and the tokens of step k-1 go through the output thread. Otherwise
 * each step is awaited before the next is planned, and sequences may have drafts.
 *
 * <p>The clock is read once a step, after the commands that came during the step have been taken and before its tokens
 * are counted. That reading stamps the tokens, the arrivals of those commands in the queue and the next schedule, so
 * that arrival, queued, scheduled, first and last token of a request never go backwards.
 *
 * <p>A step that fails ends its own sequences, and those of the step behind it, which builds on it. A second failure
 * within a minute, a block pool that does not add up, or an error of the virtual machine ends the engine: every request
 * gets {@link EngineDeadException}, the inbox closes, the thread ends; memory stays until {@code close}.
 */
final class EngineLoop implements Runnable {
  /** Two failed steps within this time are too many. */
  private static final long FAILURE_WINDOW_NANOS = 60_000_000_000L;

  /** A step from its launch until its output has been taken. */
  private static final class Flight {
    @Nullable StepPlan plan;
    @Nullable StepHandle handle;
    // What went wrong at the launch; there is no handle then.
    @Nullable Throwable refused;
    // There was nothing to compute before it.
    boolean afterIdle;
  }

  /** Hears what becomes of the engine. */
  interface StateChanges {
    /** The engine is in a new state because of something, or again in the old one. */
    void changed(EngineState state, @Nullable Throwable cause);
  }

  private final Inbox inbox;
  private final OutputQueue queue;
  private final Scheduler scheduler;
  private final ModelRunner runner;
  private final RequestTable requests;
  private final EventRecorder recorder;
  private final StateChanges stateChanges;
  private final @Nullable NgramProposer proposer;
  private final int[] drafts;
  private final QueueDeadlines deadlines = new QueueDeadlines();
  private final int maxInFlight;
  private final Flight[] flights = {new Flight(), new Flight()};
  private long launches;
  private int numInFlight;
  private boolean idle = true;
  private OutputBatch batch;
  private @Nullable Command commands;
  private volatile boolean closing;
  private volatile @Nullable Throwable killedBy;
  private boolean failedBefore;
  private boolean degraded;
  private long lastFailureNanos;

  /**
   * @param inbox where commands come from
   * @param queue where outputs go; closed when this thread ends
   * @param scheduler plans; its listener is {@code recorder}
   * @param runner computes
   * @param requests the live sequences
   * @param recorder writes events
   * @param proposer makes drafts; null without speculation, and with asynchronous scheduling
   * @param stateChanges hears of DEGRADED, of RUNNING again, and of DEAD, on this thread
   */
  EngineLoop(
      Inbox inbox,
      OutputQueue queue,
      Scheduler scheduler,
      ModelRunner runner,
      RequestTable requests,
      EventRecorder recorder,
      @Nullable NgramProposer proposer,
      StateChanges stateChanges) {
    this.inbox = inbox;
    this.queue = queue;
    this.scheduler = scheduler;
    this.runner = runner;
    this.requests = requests;
    this.recorder = recorder;
    this.proposer = proposer;
    drafts = new int[scheduler.config().numSpeculativeTokens()];
    maxInFlight = scheduler.config().asyncScheduling() ? 2 : 1;
    this.stateChanges = stateChanges;
    batch = queue.takeEmpty();
  }

  /** Ends the thread after the step that it is in. Any thread. */
  void close() {
    closing = true;
    inbox.wake();
  }

  /** Ends the engine for good because another of its threads has failed. Any thread. */
  void kill(Throwable cause) {
    killedBy = cause;
    close();
  }

  @Override
  public void run() {
    try {
      loop();
      Throwable fault = killedBy;
      if (fault != null) {
        throw fault;
      }
      while (numInFlight > 0) {
        var _ = finishStep();
      }
      endAll();
    } catch (Throwable cause) {
      die(cause);
    } finally {
      queue.close();
    }
  }

  private void loop() {
    long now = System.nanoTime();
    while (!closing) {
      if (!scheduler.hasWork()) {
        idle = true;
        Command command = inbox.takeAll();
        if (command == null) {
          inbox.await();
          continue;
        }
        now = System.nanoTime();
        carryOut(command, now);
        publish();
      } else {
        now = step(now);
      }
    }
  }

  /** Plans and launches a step and, once as many are in flight as may be, ends the oldest; returns the time. */
  private long step(long scheduleNanos) {
    StepPlan plan = scheduler.schedule(scheduleNanos);
    if (plan.numTokens() > 0) {
      launch(plan, scheduleNanos);
      if (numInFlight < maxInFlight && newest().refused == null) {
        return scheduleNanos;
      }
    } else if (numInFlight == 0) {
      return waitForRoom(scheduleNanos);
    }
    long now = finishStep();
    if (numInFlight > 0 && newest().refused != null) {
      // Nothing can be planned behind a step that was not launched.
      now = finishStep();
    }
    return now;
  }

  private Flight newest() {
    return flights[(int) ((launches - 1) % flights.length)];
  }

  private Flight oldest() {
    return flights[(int) ((launches - numInFlight) % flights.length)];
  }

  private void launch(StepPlan plan, long scheduleNanos) {
    recorder.stepPlanned(scheduler, plan, scheduleNanos);
    launches++;
    numInFlight++;
    Flight flight = newest();
    flight.plan = plan;
    flight.afterIdle = idle;
    idle = false;
    try {
      flight.handle = runner.launch(plan);
    } catch (VirtualMachineError e) {
      throw e;
    } catch (Throwable e) {
      flight.refused = e;
    }
  }

  /** Waits for the oldest step in flight and takes its output; returns the step's reading of the clock. */
  private long finishStep() {
    Flight flight = oldest();
    numInFlight--;
    StepPlan plan = Objects.requireNonNull(flight.plan);
    StepResult result;
    try {
      if (flight.refused != null) {
        throw flight.refused;
      }
      result = runner.await(Objects.requireNonNull(flight.handle));
    } catch (VirtualMachineError e) {
      throw e;
    } catch (Throwable e) {
      flight.refused = null;
      return stepFailed(plan, e);
    }
    Command arrived = inbox.takeAll();
    long now = System.nanoTime();
    carryOut(arrived, now);
    if (!flight.afterIdle) {
      recorder.bubble(result.gapNanos());
    }
    recorder.stepEnded(plan, result);
    StepOutputs outputs = batch.outputs();
    scheduler.update(plan, result, now, outputs);
    hasOutputs(plan, now);
    if (proposer != null) {
      propose(proposer, outputs);
    }
    publish();
    if (degraded && now - lastFailureNanos > FAILURE_WINDOW_NANOS) {
      degraded = false;
      stateChanges.changed(EngineState.RUNNING, null);
    }
    return now;
  }

  /** Guesses the next tokens of what got tokens and goes on. */
  private void propose(NgramProposer by, StepOutputs outputs) {
    for (int i = 0; i < outputs.size(); i++) {
      Sequence sequence = outputs.sequence(i);
      if (sequence.isLive()) {
        scheduler.setDrafts(sequence, drafts, sequence.propose(by, drafts));
      }
    }
  }

  /** Nothing that waits can run yet: whoever can change that sends a command, or waits too long. */
  private long waitForRoom(long scheduleNanos) {
    Command arrived = inbox.takeAll();
    if (arrived == null) {
      inbox.await(deadlines.nanosLeft(scheduleNanos));
    }
    idle = true;
    long now = System.nanoTime();
    carryOut(arrived, now);
    publish();
    return now;
  }

  private long stepFailed(StepPlan plan, Throwable cause) {
    Flight behind = numInFlight > 0 ? oldest() : null;
    numInFlight = 0;
    if (behind != null) {
      awaitInVain(behind);
    }
    long now = System.nanoTime();
    boolean again = failedBefore && now - lastFailureNanos <= FAILURE_WINDOW_NANOS;
    failedBefore = true;
    lastFailureNanos = now;
    if (again) {
      // Before any of its requests learns of it.
      stateChanges.changed(EngineState.DEAD, cause);
    }
    endSequences(plan, cause, now, again);
    if (behind != null) {
      endSequences(Objects.requireNonNull(behind.plan), cause, now, again);
    }
    if (again) {
      throw new IllegalStateException("a second step failed within a minute: " + cause, cause);
    }
    if (!scheduler.audit()) {
      throw new IllegalStateException("KV blocks and their owners do not add up after a failed step: " + cause, cause);
    }
    degraded = true;
    stateChanges.changed(EngineState.DEGRADED, cause);
    return now;
  }

  /** Waits for a step whose result is worth nothing, as it builds on one that has failed. */
  private void awaitInVain(Flight flight) {
    boolean launched = flight.refused == null;
    flight.refused = null;
    if (launched) {
      try {
        var _ = runner.await(Objects.requireNonNull(flight.handle));
      } catch (VirtualMachineError e) {
        throw e;
      } catch (Throwable e) {
        // Whatever it is, it comes from the failure before it.
        return;
      }
    }
  }

  private void endSequences(StepPlan plan, Throwable cause, long now, boolean again) {
    recorder.stepFailed(plan);
    scheduler.fail(plan, now, batch.outputs());
    hasOutputs(plan, now);
    batch.setFailure(cause, again);
    publish();
  }

  private void hasOutputs(StepPlan plan, long batchNanos) {
    StepOutputs outputs = batch.outputs();
    batch.stepDone(plan.step(), batchNanos);
    for (int i = 0; i < outputs.size(); i++) {
      batch.setRecord(i, requests.record(outputs.sequence(i)));
    }
  }

  /** Events first, so that a step precedes its pick-up; then the tokens. */
  private void publish() {
    recorder.commit(scheduler);
    if (!batch.isEmpty()) {
      queue.put(batch);
      batch = queue.takeEmpty();
    } else {
      batch.clear();
    }
    requests.sweep();
  }

  /** Carries out commands, oldest first, then deadlines; commands not yet done stay reachable if one of them fails. */
  private void carryOut(@Nullable Command first, long now) {
    commands = first;
    while (commands != null) {
      Command command = commands;
      for (RequestRecord record : command.records()) {
        switch (command.kind()) {
          case ADD -> add(record, now);
          case ABORT -> end(record, command.reason(), now);
          case END -> endFound(record, command.reason(), now);
          case ASK -> throw new IllegalStateException("a question has no records");
        }
      }
      if (command.kind() == Command.Kind.ADD) {
        deadlines.add(command.records()[0].generation());
      }
      EngineQuestion<?> question = command.question();
      if (question != null) {
        question.answer(scheduler, now);
      }
      commands = command.next;
    }
    for (Generation late = deadlines.poll(now); late != null; late = deadlines.poll(now)) {
      late.abort(Generation.QUEUE_TIMEOUT);
      for (RequestRecord record : late.records()) {
        end(record, FinishReason.ABORT, now);
      }
    }
  }

  /** Takes a record in; one whose end was asked for on the way is counted like any other, but never computed. */
  private void add(RequestRecord record, long now) {
    scheduler.add(requests.enter(record), now);
    if (record.generation().abortCause() != null) {
      end(record, FinishReason.ABORT, now);
    }
  }

  private void end(RequestRecord record, FinishReason reason, long now) {
    Sequence sequence = record.sequence();
    if (sequence != null && scheduler.abort(sequence, reason, now)) {
      batch.addEnd(record, reason);
    }
  }

  /** The output thread has found the end already. */
  private void endFound(RequestRecord record, FinishReason reason, long now) {
    Sequence sequence = record.sequence();
    if (sequence == null || scheduler.abort(sequence, reason, now)) {
      return;
    }
    FinishReason counted = sequence.finishReason();
    if (counted != null && counted != reason) {
      recorder.reasonCorrected(counted, reason);
    }
  }

  /** The engine is being closed: what runs ends, what has not been looked at is refused. */
  private void endAll() {
    long now = System.nanoTime();
    Command rest = inbox.close();
    carryOut(rest, now);
    EngineClosedException closed = new EngineClosedException();
    for (RequestRecord record : requests.live()) {
      record.generation().fail(closed);
      end(record, FinishReason.ABORT, now);
    }
    publish();
  }

  private void die(Throwable cause) {
    stateChanges.changed(EngineState.DEAD, cause);
    batch.setFailure(cause, true);
    refuse(commands, cause);
    refuse(inbox.close(), cause);
    for (RequestRecord record : requests.live()) {
      recorder.died(record);
      batch.addEnd(record, FinishReason.ERROR);
    }
    recorder.commitEmpty(scheduler.pool());
    queue.put(batch);
  }

  /** Ends the requests that were not taken in, or not wholly. */
  private void refuse(@Nullable Command first, Throwable cause) {
    for (Command command = first; command != null; command = command.next) {
      EngineQuestion<?> question = command.question();
      if (question != null) {
        question.refuse(new EngineDeadException(cause));
      }
      if (command.kind() == Command.Kind.ADD) {
        for (RequestRecord record : command.records()) {
          batch.addEnd(record, FinishReason.ERROR);
        }
      }
    }
  }
}
