package dev.tacho.engine.scheduler;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Sequences at numbered places, and beside them how far they have come, so that a step need not look at the sequences
 * themselves. Copied as a whole: the garbage collector is told of one copy at a time, not of each reference. Engine
 * thread only.
 */
final class PlacedSequences {
  private @Nullable Sequence[] sequences = new @Nullable Sequence[16];
  private @Nullable SequenceProgress[] progress = new @Nullable SequenceProgress[16];
  private int end;

  /** Places in use: nothing is at this one or behind it. */
  int end() {
    return end;
  }

  /** Makes it equal to another. */
  void copyFrom(PlacedSequences other) {
    reserve(other.end);
    System.arraycopy(other.sequences, 0, sequences, 0, other.end);
    System.arraycopy(other.progress, 0, progress, 0, other.end);
    cut(other.end);
    end = other.end;
  }

  /** Copies the sequences alone into an array, which is made longer if it is too short. */
  @Nullable Sequence[] copySequences(@Nullable Sequence[] into) {
    @Nullable Sequence[] copy = into.length < end ? new @Nullable Sequence[sequences.length] : into;
    System.arraycopy(sequences, 0, copy, 0, end);
    return copy;
  }

  /** The sequence at a place. */
  Sequence sequence(int place) {
    Sequence s = sequences[place];
    if (s == null) {
      throw new IllegalStateException("no sequence at place " + place + " of " + end);
    }
    return s;
  }

  /** How far the sequence at a place has come. */
  SequenceProgress progress(int place) {
    SequenceProgress p = progress[place];
    if (p == null) {
      throw new IllegalStateException("no sequence at place " + place + " of " + end);
    }
    return p;
  }

  /** The same, or null if there is none. */
  @Nullable SequenceProgress find(int place) {
    return progress[place];
  }

  /** Puts a sequence to a place. */
  void set(int place, SequenceProgress of) {
    reserve(place + 1);
    sequences[place] = of.sequence;
    progress[place] = of;
    end = Math.max(end, place + 1);
  }

  /** Takes the sequence at a place away; the others stay where they are. */
  void clear(int place) {
    sequences[place] = null;
    progress[place] = null;
    while (end > 0 && progress[end - 1] == null) {
      end--;
    }
  }

  /** Moves the sequences of the places from {@code from} to {@code to} down to another place. */
  void moveDown(int from, int to, int place) {
    System.arraycopy(sequences, from, sequences, place, to - from);
    System.arraycopy(progress, from, progress, place, to - from);
    for (int i = place; i < place + to - from; i++) {
      progress(i).place = i;
    }
  }

  /** Takes away all sequences from a place on. */
  void cut(int place) {
    if (place < end) {
      Arrays.fill(sequences, place, end, null);
      Arrays.fill(progress, place, end, null);
      end = place;
    }
  }

  private void reserve(int places) {
    if (places > progress.length) {
      int capacity = Math.max(places, 2 * progress.length);
      sequences = Arrays.copyOf(sequences, capacity);
      progress = Arrays.copyOf(progress, capacity);
    }
  }
}
