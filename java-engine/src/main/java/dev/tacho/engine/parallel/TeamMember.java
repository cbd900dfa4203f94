package dev.tacho.engine.parallel;

/**
 * One member of a {@link WorkerTeam} as a running {@link TeamTask} sees it: who it is, its share of the work, and the
 * barrier. Used by the member's own thread alone, and only inside {@link TeamTask#run}.
 */
public final class TeamMember {
  private final WorkerTeam team;
  private final int index;

  TeamMember(WorkerTeam team, int index) {
    this.team = team;
    this.index = index;
  }

  /** This member's number, 0 to {@link #size} - 1. */
  public int index() {
    return index;
  }

  /** Members of the team. */
  public int size() {
    return team.size();
  }

  /** The first of {@code items} that is this member's; shares are contiguous and differ by one item at most. */
  public int begin(int items) {
    return share(items, index);
  }

  /** The end of this member's share of {@code items}. */
  public int end(int items) {
    return share(items, index + 1);
  }

  /** Where the equal share of the member with a number begins. */
  int share(int items, int member) {
    return (int) ((long) items * member / team.size());
  }

  /** How many times members had called this since the last barrier; no two get the same number. */
  int claim() {
    return team.claim();
  }

  /**
   * Waits until every member has come here; what they wrote before is visible after.
   *
   * @throws BrokenTeamException if a member has failed; let it pass
   */
  public void barrier() {
    team.barrier(index);
  }
}
