package dev.tacho.engine.parallel;

/** A program that every member of a {@link WorkerTeam} runs at the same time, each with its own {@link TeamMember}. */
@FunctionalInterface
public interface TeamTask {
  /**
   * Runs one member's part. What it throws ends the task for the whole team and comes out of {@link WorkerTeam#await}.
   *
   * @param member who is running
   */
  void run(TeamMember member);
}
