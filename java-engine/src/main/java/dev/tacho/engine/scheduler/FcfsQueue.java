package dev.tacho.engine.scheduler;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** First come, first served; preempted sequences in front. */
final class FcfsQueue implements WaitingQueue {
  private final SequenceList list = new SequenceList();
  // Those up to this one have been passed over in the present step.
  private @Nullable Sequence passedOver;

  @Override
  public void add(Sequence sequence) {
    list.addLast(sequence);
  }

  @Override
  public void addPreempted(Sequence sequence) {
    list.addFirst(sequence);
  }

  @Override
  public @Nullable Sequence peek() {
    return passedOver == null ? list.first() : passedOver.next;
  }

  @Override
  public void passOver(Sequence sequence) {
    passedOver = sequence;
  }

  @Override
  public void endPass() {
    passedOver = null;
  }

  @Override
  public void remove(Sequence sequence) {
    list.remove(sequence);
  }

  @Override
  public @Nullable Sequence longestWaiting(int look) {
    Sequence longest = null;
    int seen = 0;
    for (Sequence s = list.first(); s != null && seen < look; s = s.next, seen++) {
      if (longest == null || s.waitingSinceNanos - longest.waitingSinceNanos < 0) {
        longest = s;
      }
      if (s.state != SequenceState.PREEMPTED) {
        // Those behind it came later.
        break;
      }
    }
    return longest;
  }

  @Override
  public int size() {
    return list.size();
  }

  @Override
  public List<Sequence> ordered() {
    return list.toList();
  }
}
