package dev.tacho.metrics.collector;

import dev.tacho.metrics.stats.RequestTimeline;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The timelines of an engine's open sequences by slot and generation, and which of them has waited or run longest. An
 * engine's records are read in their order, so a slot holds one generation at a time; one that is still there when the
 * next is queued has lost its end. One thread.
 */
final class TimelineTable {
  private @Nullable Entry[] slots = new @Nullable Entry[64];
  private int size;
  // Each begins and ends with a link of its own.
  private final Link waiting = new Link(new RequestTimeline(0, 0, 0, 0, 0, 1, null));
  private final Link scheduled = new Link(waiting.timeline);

  @Nullable RequestTimeline find(int slot, int generation) {
    Entry entry = entry(slot, generation);
    return entry == null ? null : entry.timeline;
  }

  /** Adds a timeline. Returns the one that had to give way, if any. */
  @Nullable RequestTimeline add(int slot, int generation, RequestTimeline timeline) {
    if (slot >= slots.length) {
      slots = Arrays.copyOf(slots, Math.max(slot + 1, slots.length * 2));
    }
    Entry before = slots[slot];
    Entry added = new Entry(generation, timeline);
    slots[slot] = added;
    added.waiting.putBefore(waiting);
    if (before == null) {
      size++;
      return null;
    }
    before.takeOut();
    return before.timeline;
  }

  /** A sequence moved into the running list. Returns its timeline, or null if it is unknown. */
  @Nullable RequestTimeline scheduled(int slot, int generation, long nanos) {
    Entry entry = entry(slot, generation);
    if (entry == null) {
      return null;
    }
    entry.waiting.takeOut();
    if (!entry.timeline.isScheduled()) {
      entry.scheduled.putBefore(scheduled);
    }
    entry.timeline.scheduled(nanos);
    return entry.timeline;
  }

  /** A sequence lost its place and waits again. Returns its timeline, or null if it is unknown. */
  @Nullable RequestTimeline preempted(int slot, int generation, long nanos) {
    Entry entry = entry(slot, generation);
    if (entry == null) {
      return null;
    }
    entry.waiting.takeOut();
    entry.waiting.putBefore(waiting);
    entry.timeline.preempted(nanos);
    return entry.timeline;
  }

  /** Takes a timeline out. */
  @Nullable RequestTimeline remove(int slot, int generation) {
    Entry entry = entry(slot, generation);
    if (entry == null) {
      return null;
    }
    slots[slot] = null;
    size--;
    entry.takeOut();
    return entry.timeline;
  }

  /** The sequence whose present wait in the queue is the longest, or null. */
  @Nullable RequestTimeline longestWaiting() {
    return waiting.next == waiting ? null : waiting.next.timeline;
  }

  /** The sequence that was scheduled first of those open, or null. */
  @Nullable RequestTimeline longestRunning() {
    return scheduled.next == scheduled ? null : scheduled.next.timeline;
  }

  int size() {
    return size;
  }

  private @Nullable Entry entry(int slot, int generation) {
    Entry entry = slot < slots.length ? slots[slot] : null;
    return entry != null && entry.generation == generation ? entry : null;
  }

  /** A timeline and its places in the two lists. */
  private static final class Entry {
    final int generation;
    final RequestTimeline timeline;
    final Link waiting;
    final Link scheduled;

    Entry(int generation, RequestTimeline timeline) {
      this.generation = generation;
      this.timeline = timeline;
      waiting = new Link(timeline);
      scheduled = new Link(timeline);
    }

    void takeOut() {
      waiting.takeOut();
      scheduled.takeOut();
    }
  }

  /** A timeline's place in a list; one that is in none is linked to itself. */
  private static final class Link {
    final RequestTimeline timeline;
    Link previous = this;
    Link next = this;

    Link(RequestTimeline timeline) {
      this.timeline = timeline;
    }

    /** Puts it, from no list, at the end of the list of {@code head}. */
    void putBefore(Link head) {
      previous = head.previous;
      next = head;
      previous.next = this;
      head.previous = this;
    }

    void takeOut() {
      previous.next = next;
      next.previous = previous;
      previous = this;
      next = this;
    }
  }
}
