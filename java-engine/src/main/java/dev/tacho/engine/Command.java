package dev.tacho.engine;

import dev.tacho.metrics.event.FinishReason;
import org.jspecify.annotations.Nullable;

/**
 * What other threads ask of the engine thread. Made by the asking thread; its {@link Inbox} link is the engine thread's
 * once it is in.
 */
final class Command {
  /** What is asked. */
  enum Kind {
    /** Take the records of a request in. */
    ADD,
    /** End all records of a request with ABORT. */
    ABORT,
    /** Forget one record, whose end the output thread has found: a stop string, or an error of its own. */
    END,
    /** Answer a question. */
    ASK
  }

  private final Kind kind;
  private final RequestRecord[] records;
  private final FinishReason reason;
  private final @Nullable EngineQuestion<?> question;
  @Nullable Command next;

  private Command(Kind kind, RequestRecord[] records, FinishReason reason, @Nullable EngineQuestion<?> question) {
    this.kind = kind;
    this.records = records;
    this.reason = reason;
    this.question = question;
  }

  static Command add(Generation generation) {
    return new Command(Kind.ADD, generation.records(), FinishReason.ABORT, null);
  }

  static Command abort(Generation generation) {
    return new Command(Kind.ABORT, generation.records(), FinishReason.ABORT, null);
  }

  static Command end(RequestRecord record, FinishReason reason) {
    return new Command(Kind.END, new RequestRecord[] {record}, reason, null);
  }

  static Command ask(EngineQuestion<?> question) {
    return new Command(Kind.ASK, new RequestRecord[0], FinishReason.ABORT, question);
  }

  Kind kind() {
    return kind;
  }

  /** The records that it concerns. */
  RequestRecord[] records() {
    return records;
  }

  /** What is asked, if its kind is {@link Kind#ASK}. */
  @Nullable EngineQuestion<?> question() {
    return question;
  }

  /** Why they end. */
  FinishReason reason() {
    return reason;
  }
}
