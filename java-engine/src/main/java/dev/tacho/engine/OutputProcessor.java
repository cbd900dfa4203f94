package dev.tacho.engine;

import dev.tacho.engine.sampling.TokenLogprobs;
import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepOutputs;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.FinishReason;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The output thread: turns tokens into text, finds stop strings, fills the mailboxes and ends requests. It runs no
 * foreign code and never waits for a reader. What goes wrong with one request ends that request alone.
 */
final class OutputProcessor implements Runnable {
  private final OutputQueue queue;
  private final EventWriter events;
  private final TextCodec codec;
  private final Inbox inbox;
  private final AdmissionGate gate;
  private final Predicate<Generation> ended;
  private final Consumer<Throwable> failures;

  /**
   * @param queue where batches come from
   * @param events the output ring's
   * @param codec for log-probabilities
   * @param inbox where the engine thread is told of stop strings
   * @param gate is told of first outputs and of ends
   * @param ended takes each request that has ended out of the live ones; false if somebody else has done so
   * @param failures hears of a batch that could not be processed
   */
  OutputProcessor(
      OutputQueue queue,
      EventWriter events,
      TextCodec codec,
      Inbox inbox,
      AdmissionGate gate,
      Predicate<Generation> ended,
      Consumer<Throwable> failures) {
    this.queue = queue;
    this.events = events;
    this.codec = codec;
    this.inbox = inbox;
    this.gate = gate;
    this.ended = ended;
    this.failures = failures;
  }

  @Override
  public void run() {
    for (OutputBatch batch = queue.take(); batch != null; batch = queue.take()) {
      try {
        process(batch);
      } catch (RuntimeException | Error e) {
        failures.accept(e);
        abandon(batch, e);
      }
    }
    events.noMorePickUps(System.nanoTime());
    events.commit();
  }

  /** Ends what a batch that could not be processed was about. */
  private void abandon(OutputBatch batch, Throwable fault) {
    long now = System.nanoTime();
    for (int i = 0; i < batch.numOutputs() + batch.numEnded(); i++) {
      RequestRecord record = i < batch.numEnded() ? batch.ended(i) : batch.record(i - batch.numEnded());
      if (!record.output().ended()) {
        failAlone(record, fault, now);
      }
    }
  }

  /**
   * Texts and stop strings first, then the events of the batch, then what callers see: a scrape never lags a reader,
   * but for the end by a stop string, which counts when the engine has let the sequence go.
   */
  private void process(OutputBatch batch) {
    long now = System.nanoTime();
    int outputs = batch.numOutputs();
    if (outputs > 0) {
      events.pickUp(batch.step(), now);
    }
    for (int i = 0; i < outputs; i++) {
      RequestRecord record = batch.record(i);
      if (!record.output().ended()) {
        detokenize(batch.outputs(), i, record);
      }
    }
    events.commit();
    for (int i = 0; i < batch.numEnded(); i++) {
      endOutside(batch, batch.ended(i), batch.endReason(i), now);
    }
    for (int i = 0; i < outputs; i++) {
      RequestRecord record = batch.record(i);
      if (!record.output().ended()) {
        deliver(batch, i, record, now);
      }
    }
  }

  private void detokenize(StepOutputs outputs, int i, RequestRecord record) {
    SequenceOutput output = record.output();
    try {
      output.begin();
      int count = outputs.tokenCount(i);
      boolean endToken = outputs.finishReason(i) == FinishReason.STOP;
      for (int j = 0; j < count && output.stopString() == null; j++) {
        output.append(outputs.token(i, j), endToken && j == count - 1);
      }
      if (output.stopString() != null) {
        Sequence sequence = outputs.sequence(i);
        events.stopped(sequence.slot(), sequence.generation());
      } else if (outputs.finishReason(i) != null) {
        output.flush();
      }
    } catch (RuntimeException e) {
      output.failed(e);
    }
  }

  private void deliver(OutputBatch batch, int i, RequestRecord record, long now) {
    StepOutputs outputs = batch.outputs();
    SequenceOutput output = record.output();
    Generation generation = record.generation();
    RuntimeException fault = output.fault();
    if (fault != null) {
      failAlone(record, fault, now);
      return;
    }
    if (output.newTokens() > 0) {
      record.leavePrefill(gate);
      generation.draftsChecked(outputs.drafted(i), outputs.accepted(i));
      generation.tokensArrived(batch.batchNanos(), now);
      if (generation.mailbox().put(record.index(), output, outputs, i, this::positionLogprobs, now)) {
        generation.abort(Generation.SLOW_READER);
      }
    }
    FinishReason reason = outputs.finishReason(i);
    String stop = output.stopString();
    if (stop != null) {
      // Also if the engine has ended it meanwhile: its totals must then count another reason.
      var _ = inbox.put(Command.end(record, FinishReason.STOP));
      end(record, FinishReason.STOP, new StopReason.StopString(stop), now);
    } else if (reason != null) {
      if (reason == FinishReason.ERROR) {
        generation.fail(failure(batch, generation));
      }
      int token = outputs.stopTokenId(i);
      end(record, reason, token == Sequence.NO_STOP_TOKEN ? null : new StopReason.StopToken(token), now);
    }
  }

  private void endOutside(OutputBatch batch, RequestRecord record, FinishReason reason, long now) {
    SequenceOutput output = record.output();
    if (output.ended()) {
      return;
    }
    Generation generation = record.generation();
    if (reason == FinishReason.ERROR) {
      generation.fail(failure(batch, generation));
    }
    try {
      output.begin();
      output.flush();
    } catch (RuntimeException e) {
      failAlone(record, e, now);
      return;
    }
    String cause = generation.abortCause();
    end(record, reason, cause == null ? null : new StopReason.Aborted(cause), now);
  }

  private static EngineException failure(OutputBatch batch, Generation generation) {
    Throwable cause = batch.failure();
    if (cause instanceof EngineException known) {
      return known;
    }
    Throwable named = cause == null ? new IllegalStateException("ended with an error") : cause;
    return batch.dead() ? new EngineDeadException(named) : new RequestFailedException(generation.requestId(), named);
  }

  /** A fault in the text of one sequence: the request ends with an error, the engine is told. */
  private void failAlone(RequestRecord record, Throwable fault, long now) {
    Generation generation = record.generation();
    // First this end, then that of the request's other sequences: this one counts as an error, not as aborted.
    var _ = inbox.put(Command.end(record, FinishReason.ERROR));
    generation.fail(new RequestFailedException(generation.requestId(), fault));
    record.output().begin();
    end(record, FinishReason.ERROR, null, now);
  }

  private void end(RequestRecord record, FinishReason reason, @Nullable StopReason stopReason, long now) {
    Generation generation = record.generation();
    SequenceOutput output = record.output();
    output.markEnded();
    record.leave(gate);
    generation.mailbox().finish(record.index(), output.takeText(), reason, stopReason);
    if (generation.sequenceEnded(record) && ended.test(generation)) {
      generation.complete(now);
    }
  }

  private PositionLogprobs positionLogprobs(int id, TokenLogprobs logprobs) {
    int[] ids = logprobs.topIds();
    float[] values = logprobs.topLogprobs();
    List<TokenLogprob> top = new ArrayList<>(ids.length);
    for (int i = 0; i < ids.length; i++) {
      top.add(new TokenLogprob(ids[i], codec.tokenText(ids[i]), values[i]));
    }
    return new PositionLogprobs(new TokenLogprob(id, codec.tokenText(id), logprobs.logprob()), logprobs.rank(), top);
  }
}
