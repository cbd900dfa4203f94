package dev.tacho.engine.scheduler;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A binary heap ordered by priority, arrival and request id. Each sequence knows its place, so that one in the middle
 * is removed in O(log n).
 */
final class PriorityHeap implements WaitingQueue {
  /** Most urgent first. */
  static final Comparator<Sequence> ORDER = PriorityHeap::compare;

  private final SequenceList passedOver = new SequenceList();
  private Sequence[] heap = new Sequence[16];
  private int size;

  private static int compare(Sequence a, Sequence b) {
    int order = compareUrgency(a, b);
    return order != 0 ? order : a.requestId().compareTo(b.requestId());
  }

  /** Compares priority and arrival alone. Arrivals are compared by difference, as nanoTime may wrap. */
  static int compareUrgency(Sequence a, Sequence b) {
    return a.priority() != b.priority()
        ? Integer.compare(a.priority(), b.priority())
        : Long.signum(a.arrivalNanos() - b.arrivalNanos());
  }

  @Override
  public void add(Sequence sequence) {
    if (size == heap.length) {
      heap = Arrays.copyOf(heap, size * 2);
    }
    place(sequence, size++);
    siftUp(sequence);
  }

  @Override
  public void addPreempted(Sequence sequence) {
    add(sequence);
  }

  @Override
  public @Nullable Sequence peek() {
    return size == 0 ? null : heap[0];
  }

  @Override
  public void passOver(Sequence sequence) {
    remove(sequence);
    passedOver.addLast(sequence);
  }

  @Override
  public void endPass() {
    for (Sequence s = passedOver.first(); s != null; s = passedOver.first()) {
      passedOver.remove(s);
      add(s);
    }
  }

  @Override
  public void remove(Sequence sequence) {
    int at = sequence.heapIndex;
    Sequence moved = heap[--size];
    Arrays.fill(heap, size, size + 1, null);
    sequence.heapIndex = -1;
    if (moved != sequence) {
      place(moved, at);
      siftUp(moved);
      siftDown(moved);
    }
  }

  @Override
  public @Nullable Sequence longestWaiting(int look) {
    Sequence longest = null;
    for (int i = 0; i < Math.min(size, look); i++) {
      if (longest == null || heap[i].waitingSinceNanos - longest.waitingSinceNanos < 0) {
        longest = heap[i];
      }
    }
    return longest;
  }

  @Override
  public int size() {
    return size + passedOver.size();
  }

  @Override
  public List<Sequence> ordered() {
    return Arrays.stream(heap, 0, size).sorted(ORDER).toList();
  }

  private void place(Sequence sequence, int at) {
    heap[at] = sequence;
    sequence.heapIndex = at;
  }

  private void siftUp(Sequence sequence) {
    int at = sequence.heapIndex;
    while (at > 0) {
      Sequence parent = heap[(at - 1) / 2];
      if (compare(parent, sequence) <= 0) {
        break;
      }
      int parentAt = parent.heapIndex;
      place(parent, at);
      at = parentAt;
    }
    place(sequence, at);
  }

  private void siftDown(Sequence sequence) {
    int at = sequence.heapIndex;
    while (2 * at + 1 < size) {
      int child = 2 * at + 1;
      if (child + 1 < size && compare(heap[child + 1], heap[child]) < 0) {
        child++;
      }
      if (compare(sequence, heap[child]) <= 0) {
        break;
      }
      place(heap[child], at);
      at = child;
    }
    place(sequence, at);
  }
}
