package dev.tacho.engine;

import dev.tacho.engine.scheduler.Sequence;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The sequences that live in the engine, by slot. A slot that comes free is used again with the next generation, so
 * that what still refers to the old sequence is never credited to the new one. A released record can be found until the
 * next {@link #sweep}, or until its slot is taken again. Engine thread only.
 */
final class RequestTable {
  private static final int INITIAL_SLOTS = 256;

  private @Nullable RequestRecord[] records = new @Nullable RequestRecord[INITIAL_SLOTS];
  private int[] generations = new int[records.length];
  private int numUsed;

  // Free slots, the one that has rested longest first: a ring of as many places as there are slots.
  private int[] freeSlots = new int[records.length];
  private int firstFree;
  private int numFree;

  // Slots released since the last sweep.
  private int[] released = new int[records.length];
  private int numReleased;

  /** Gives a record a slot and makes its sequence. */
  Sequence enter(RequestRecord record) {
    int slot;
    if (numFree > 0) {
      slot = freeSlots[firstFree];
      firstFree = (firstFree + 1) % freeSlots.length;
      numFree--;
    } else {
      if (numUsed == records.length) {
        grow();
      }
      slot = numUsed++;
    }
    records[slot] = record;
    return record.enter(slot, ++generations[slot]);
  }

  private void grow() {
    int size = 2 * records.length;
    int[] free = new int[size];
    for (int i = 0; i < numFree; i++) {
      free[i] = freeSlots[(firstFree + i) % freeSlots.length];
    }
    freeSlots = free;
    firstFree = 0;
    records = Arrays.copyOf(records, size);
    generations = Arrays.copyOf(generations, size);
  }

  /** The record of a sequence that lives or was released since the last {@link #sweep}. */
  RequestRecord record(Sequence sequence) {
    RequestRecord record = records[sequence.slot()];
    if (record == null || record.sequence() != sequence) {
      throw new IllegalStateException("sequence " + sequence + " has left its slot");
    }
    return record;
  }

  /** Gives the slot of a sequence back. */
  void release(Sequence sequence) {
    record(sequence).leave();
    freeSlots[(firstFree + numFree) % freeSlots.length] = sequence.slot();
    numFree++;
    if (numReleased == released.length) {
      released = Arrays.copyOf(released, 2 * numReleased);
    }
    released[numReleased++] = sequence.slot();
  }

  /** Lets the records go that were released before, with the texts and tokens that hang on them. */
  void sweep() {
    for (int i = 0; i < numReleased; i++) {
      RequestRecord record = records[released[i]];
      if (record != null && !record.isLive()) {
        records[released[i]] = null;
      }
    }
    numReleased = 0;
  }

  /** The records that live; a copy. */
  List<RequestRecord> live() {
    List<RequestRecord> live = new ArrayList<>();
    for (int slot = 0; slot < numUsed; slot++) {
      RequestRecord record = records[slot];
      if (record != null && record.isLive()) {
        live.add(record);
      }
    }
    return live;
  }
}
