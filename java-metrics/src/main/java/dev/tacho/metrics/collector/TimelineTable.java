package dev.tacho.metrics.collector;

import dev.tacho.metrics.stats.RequestTimeline;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The timelines of an engine's live sequences by slot and generation. A slot may hold two or more generations for a
 * while: the next one is queued before the last outputs of the one before are picked up. One thread.
 */
final class TimelineTable {
  /** Generations of a slot that may be open at once; an older one has lost its end and is dropped. */
  private static final int MAX_OPEN = 4;

  private @Nullable Entry[] slots = new @Nullable Entry[64];
  private int size;

  @Nullable RequestTimeline find(int slot, int generation) {
    for (Entry entry = slot < slots.length ? slots[slot] : null; entry != null; entry = entry.older) {
      if (entry.generation == generation) {
        return entry.timeline;
      }
    }
    return null;
  }

  /** Adds a timeline. Returns the one that had to give way, if any. */
  @Nullable RequestTimeline add(int slot, int generation, RequestTimeline timeline) {
    if (slot >= slots.length) {
      slots = Arrays.copyOf(slots, Math.max(slot + 1, slots.length * 2));
    }
    Entry newest = new Entry(generation, timeline, slots[slot]);
    slots[slot] = newest;
    size++;
    Entry entry = newest;
    for (int open = 1; open < MAX_OPEN && entry.older != null; open++) {
      entry = entry.older;
    }
    Entry dropped = entry.older;
    if (dropped == null) {
      return null;
    }
    entry.older = null;
    size--;
    return dropped.timeline;
  }

  /** Takes a timeline out. */
  @Nullable RequestTimeline remove(int slot, int generation) {
    Entry newer = null;
    for (Entry entry = slot < slots.length ? slots[slot] : null; entry != null; entry = entry.older) {
      if (entry.generation == generation) {
        if (newer == null) {
          slots[slot] = entry.older;
        } else {
          newer.older = entry.older;
        }
        size--;
        return entry.timeline;
      }
      newer = entry;
    }
    return null;
  }

  int size() {
    return size;
  }

  /** A timeline and those of older generations in the same slot. */
  private static final class Entry {
    final int generation;
    final RequestTimeline timeline;
    @Nullable Entry older;

    Entry(int generation, RequestTimeline timeline, @Nullable Entry older) {
      this.generation = generation;
      this.timeline = timeline;
      this.older = older;
    }
  }
}
