package dev.tacho.engine;

import dev.tacho.engine.scheduler.StepOutputs;
import dev.tacho.metrics.event.FinishReason;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What the engine thread hands to the output thread at a time: the outputs of a step, and the sequences that ended
 * outside one. Filled by the engine thread, read by the output thread, then reused; {@link OutputQueue} carries it.
 */
final class OutputBatch {
  private final StepOutputs outputs = new StepOutputs();
  private @Nullable RequestRecord[] records = new @Nullable RequestRecord[16];
  private @Nullable RequestRecord[] ended = new @Nullable RequestRecord[0];
  private FinishReason[] endReasons = {};
  private int numEnded;
  private long step;
  private long batchNanos;
  private @Nullable Throwable failure;
  private boolean dead;
  volatile @Nullable OutputBatch next;

  /** Outputs of the step, for the scheduler to fill; empty without a step. */
  StepOutputs outputs() {
    return outputs;
  }

  /** Says which step the outputs are of, and makes room for their records. */
  void stepDone(long stepNumber, long nanos) {
    step = stepNumber;
    batchNanos = nanos;
    if (outputs.size() > records.length) {
      records = new @Nullable RequestRecord[Math.max(outputs.size(), 2 * records.length)];
    }
  }

  /** Sets the record of output {@code i}. */
  void setRecord(int i, RequestRecord record) {
    records[i] = record;
  }

  /** The record of output {@code i}. */
  RequestRecord record(int i) {
    RequestRecord record = records[i];
    if (record == null) {
      throw new IllegalStateException("output " + i + " has no record");
    }
    return record;
  }

  /** Adds a sequence that ended outside a step. */
  void addEnd(RequestRecord record, FinishReason reason) {
    if (numEnded == ended.length) {
      int size = Math.max(16, 2 * numEnded);
      ended = Arrays.copyOf(ended, size);
      endReasons = Arrays.copyOf(endReasons, size);
    }
    ended[numEnded] = record;
    endReasons[numEnded++] = reason;
  }

  /** Sequences that ended outside a step. */
  int numEnded() {
    return numEnded;
  }

  /** One of them. */
  RequestRecord ended(int i) {
    RequestRecord record = ended[i];
    if (i >= numEnded || record == null) {
      throw new IndexOutOfBoundsException("end " + i + " of " + numEnded);
    }
    return record;
  }

  /** Why it ended. */
  FinishReason endReason(int i) {
    return endReasons[i];
  }

  /** What failed, for the sequences that ended with an error. */
  void setFailure(Throwable cause, boolean engineIsDead) {
    failure = cause;
    dead = engineIsDead;
  }

  /** What failed, or null. */
  @Nullable Throwable failure() {
    return failure;
  }

  /** True if the engine died of it. */
  boolean dead() {
    return dead;
  }

  /** The step's number, 0 without a step. */
  long step() {
    return step;
  }

  /** The time of the step's tokens. */
  long batchNanos() {
    return batchNanos;
  }

  /** True if there is nothing in it to deliver. */
  boolean isEmpty() {
    return numEnded == 0 && numOutputs() == 0;
  }

  /** Outputs of the step. */
  int numOutputs() {
    return step == 0 ? 0 : outputs.size();
  }

  /** Forgets everything but the outputs, which the scheduler empties. */
  void clear() {
    Arrays.fill(records, 0, Math.min(records.length, outputs.size()), null);
    Arrays.fill(ended, 0, numEnded, null);
    numEnded = 0;
    step = 0;
    failure = null;
    dead = false;
  }
}
