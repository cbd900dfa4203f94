package dev.tacho.engine;

import dev.tacho.engine.RequestExplanation.State;
import dev.tacho.engine.scheduler.PauseState;
import dev.tacho.engine.scheduler.Scheduler;
import dev.tacho.engine.scheduler.SchedulerConfig;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.SequenceState;
import org.jspecify.annotations.Nullable;

/** Says how things stand with a request. Engine thread, between two steps. */
final class RequestExplainer {
  private final Scheduler scheduler;
  private final Generation generation;

  RequestExplainer(Scheduler scheduler, Generation generation) {
    this.scheduler = scheduler;
    this.generation = generation;
  }

  RequestExplanation explain() {
    Sequence sequence = sequence();
    if (sequence == null) {
      return entered()
          ? explanation(State.ENDING, 0, 0, "it has ended; its last tokens are on the way to the reader")
          : explanation(State.ENTERING, 0, 0, "its prompt is made into tokens, or on the way to the engine");
    }
    long needed = scheduler.blocksMissing(sequence);
    if (sequence.state() == SequenceState.RUNNING) {
      String progress = sequence.processedTokens() + " of its " + sequence.length() + " tokens are computed";
      return explanation(State.RUNNING, 0, needed, "it takes part in steps; " + progress);
    }
    boolean preempted = sequence.state() == SequenceState.PREEMPTED;
    int position = scheduler.waiting().indexOf(sequence) + 1;
    return explanation(
        preempted ? State.PREEMPTED : State.WAITING, position, needed, whyWaiting(scheduler, sequence, position));
  }

  /**
   * What keeps a waiting sequence from being admitted, in words.
   *
   * @param position its place in the queue, from 1
   */
  static String whyWaiting(Scheduler scheduler, Sequence sequence, int position) {
    String history = sequence.state() == SequenceState.PREEMPTED ? "others needed its KV blocks; " : "";
    return history + obstacle(scheduler, sequence, position);
  }

  /** The one to talk about; null if none lives. */
  private @Nullable Sequence sequence() {
    Sequence found = null;
    for (RequestRecord record : generation.records()) {
      Sequence sequence = record.sequence();
      if (sequence == null || !sequence.isLive()) {
        continue;
      }
      if (sequence.state() != SequenceState.RUNNING) {
        return sequence;
      }
      found = found == null ? sequence : found;
    }
    return found;
  }

  private boolean entered() {
    RequestRecord[] records = generation.records();
    return records.length > 0 && records[0].sequence() != null;
  }

  /** What keeps a waiting sequence from being admitted, the weightiest first. */
  private static String obstacle(Scheduler scheduler, Sequence sequence, int position) {
    if (sequence.state() == SequenceState.BLOCKED) {
      return "something that it needs beside room is not there yet";
    }
    SchedulerConfig config = scheduler.config();
    long needed = scheduler.blocksMissing(sequence);
    int free = scheduler.pool().numFree();
    if (scheduler.pause() != PauseState.UNPAUSED) {
      return "the engine sleeps, or is about to; it goes on when it is woken";
    }
    if (scheduler.numRunning() >= config.maxNumSeqs()) {
      return "all " + config.maxNumSeqs() + " places (max-num-seqs) are taken";
    }
    if (needed > free) {
      return "it needs " + needed + " KV blocks, " + free + " are free";
    }
    if (position > 1) {
      return (position - 1) + " in the queue are before it";
    }
    return "it comes next, once a step has some of its " + config.maxNumBatchedTokens() + " tokens left"
        + " (max-num-batched-tokens)";
  }

  private RequestExplanation explanation(State state, int position, long needed, String reason) {
    return new RequestExplanation(
        generation.requestId(), state, position, needed, scheduler.pool().numFree(), reason);
  }
}
