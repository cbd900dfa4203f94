package dev.tacho.engine.parallel;

/**
 * Thrown out of {@link TeamMember#barrier} when another member has failed, so that nobody waits for it forever. Carries
 * no stack trace: the failure that matters is the other one, which {@link WorkerTeam#await} throws.
 */
public final class BrokenTeamException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  BrokenTeamException() {
    super("another member of the team failed", null, false, false);
  }
}
