package dev.tacho.engine.scheduler;

/** What a pause holds back. */
public enum PauseState {
  /** Nothing. */
  UNPAUSED,
  /** Admissions, of preempted sequences too; what runs goes on. */
  PAUSED_NEW,
  /** Everything; sequences stay where they are. */
  PAUSED_ALL
}
