package dev.tacho.engine.scheduler;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The sequences that take part in steps, in the order of their admission. What a step looks at is kept here, in objects
 * that lie side by side: the memory of one sequence need not have arrived before that of the next is asked for, and
 * nothing else lies between them. A sequence that leaves makes a gap, which {@link #close} shuts; no allocation but for
 * more sequences than ever before. Engine thread only.
 */
final class RunningSequences {
  private final PlacedSequences placed = new PlacedSequences();
  private int size;
  // Those that no sequence uses: the first numSpare.
  private SequenceProgress[] spare = {};
  private int numSpare;

  /** Sequences. */
  int size() {
    return size;
  }

  /** Places in use, gaps included. */
  int end() {
    return placed.end();
  }

  /** All of them, with gaps. */
  PlacedSequences placed() {
    return placed;
  }

  /** The sequence at a place below {@link #end}; null for a gap. */
  @Nullable SequenceProgress at(int place) {
    return placed.find(place);
  }

  /** The one admitted last, or null. */
  @Nullable Sequence last() {
    return end() == 0 ? null : placed.sequence(end() - 1);
  }

  /** Adds one behind the others. */
  void add(Sequence sequence) {
    if (numSpare == 0) {
      grow();
    }
    SequenceProgress progress = spare[--numSpare];
    sequence.moveProgress(progress);
    progress.place = end();
    placed.set(end(), progress);
    size++;
  }

  private void grow() {
    // All of them are in use, so the array is free to be replaced.
    numSpare = Math.max(16, size);
    spare = new SequenceProgress[size + numSpare];
    for (int i = numSpare - 1; i >= 0; i--) {
      spare[i] = new SequenceProgress(SequenceProgress.NO_TOKENS, SequenceProgress.NO_BLOCKS);
    }
  }

  /** Takes one out; the others keep their places. */
  void remove(Sequence sequence) {
    SequenceProgress progress = sequence.keepProgress();
    placed.clear(progress.place);
    progress.clear();
    spare[numSpare++] = progress;
    size--;
  }

  /** Shuts the gaps. */
  void close() {
    int end = end();
    if (size == end) {
      return;
    }
    int filled = 0;
    int at = 0;
    while (at < end) {
      int begin = at;
      while (at < end && placed.find(at) != null) {
        at++;
      }
      if (begin > filled) {
        placed.moveDown(begin, at, filled);
      }
      filled += at - begin;
      at++;
    }
    placed.cut(filled);
  }

  /** A copy, in order. */
  List<Sequence> toList() {
    List<Sequence> all = new ArrayList<>(size);
    for (int i = 0; i < end(); i++) {
      if (placed.find(i) != null) {
        all.add(placed.sequence(i));
      }
    }
    return all;
  }
}
