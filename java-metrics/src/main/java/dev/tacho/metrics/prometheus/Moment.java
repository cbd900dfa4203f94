package dev.tacho.metrics.prometheus;

/** When the numbers of a family move. */
public enum Moment {
  /** Set once. */
  JOIN("set once, when the engine joins"),
  /** The engine's state. */
  LIFECYCLE("whenever the engine's state changes"),
  /** State of the scheduler. */
  SNAPSHOT("with every snapshot of the scheduler: after each step, and after a change of its queues between steps"),
  /** Arrival of a sequence in the scheduler. */
  ARRIVAL("when a sequence enters the scheduler's queue, each of n counted"),
  /** Admission of a sequence. */
  ADMISSION("when a sequence is admitted; a resumed one does not count again"),
  /** Preemption. */
  PREEMPTION("at once, when a running sequence is preempted"),
  /** Refusal of a request. */
  REJECTION("when a request is refused, once a request whatever its n"),
  /** First output of a sequence. */
  FIRST_OUTPUT("with the first output of a sequence"),
  /** Later outputs of a sequence. */
  LATER_OUTPUT("with every output of a sequence but its first"),
  /** Outputs of a step. */
  OUTPUT("with the outputs of every step"),
  /** A sequence's last output. */
  FINISH("when a sequence ends with an output; not when its client goes away"),
  /** Last output of the last of a request's sequences. */
  PARENT_FINISH("when the last of a request's n sequences ends with an output"),
  /** Any end of a sequence. */
  END("when a sequence ends, with or without an output"),
  /** Collection of the events. */
  DRAIN("whenever the collector has read the engine's events"),
  /** Eviction of a block. */
  EVICTION("with the snapshot after a sampled block was evicted"),
  /** End of a transfer. */
  TRANSFER("with the snapshot after a transfer ended or failed"),
  /** Report of a connector. */
  REPORT("with the snapshot after the connector reported it"),
  /** Polling of the device's counters. */
  POLL("whenever the collector has read the counters of the device"),
  /** A window of those. */
  WINDOW("about once a second, from the counters of the device over that second"),
  /** Said by the engine. */
  SAID("when the engine says so"),
  /** A part that the engine lacks. */
  NEVER("stays 0: the engine has no such part");

  private final String text;

  Moment(String text) {
    this.text = text;
  }

  /** In words, to follow the word "moves". */
  public String text() {
    return text;
  }
}
