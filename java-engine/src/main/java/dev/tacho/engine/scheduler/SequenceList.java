package dev.tacho.engine.scheduler;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A doubly linked list of sequences, linked through the sequences themselves: O(1) at both ends and for removal from
 * the middle, no allocation. A sequence is in one list at a time.
 */
final class SequenceList {
  private @Nullable Sequence first;
  private @Nullable Sequence last;
  private int size;

  @Nullable Sequence first() {
    return first;
  }

  @Nullable Sequence last() {
    return last;
  }

  int size() {
    return size;
  }

  void addLast(Sequence sequence) {
    sequence.previous = last;
    if (last == null) {
      first = sequence;
    } else {
      last.next = sequence;
    }
    last = sequence;
    size++;
  }

  void addFirst(Sequence sequence) {
    sequence.next = first;
    if (first == null) {
      last = sequence;
    } else {
      first.previous = sequence;
    }
    first = sequence;
    size++;
  }

  void remove(Sequence sequence) {
    Sequence before = sequence.previous;
    Sequence after = sequence.next;
    if (before == null) {
      first = after;
    } else {
      before.next = after;
    }
    if (after == null) {
      last = before;
    } else {
      after.previous = before;
    }
    sequence.previous = null;
    sequence.next = null;
    size--;
  }

  /** A copy, first to last. */
  List<Sequence> toList() {
    List<Sequence> all = new ArrayList<>(size);
    for (Sequence s = first; s != null; s = s.next) {
      all.add(s);
    }
    return all;
  }
}
