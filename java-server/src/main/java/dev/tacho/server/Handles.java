package dev.tacho.server;

import dev.tacho.engine.GenerationHandle;
import java.util.ArrayList;
import java.util.List;

/**
 * The requests that one answer is made from. They are cancelled together, also those that are added later: a client may
 * have gone before its first request is submitted. Any thread.
 */
final class Handles {
  private final List<GenerationHandle> handles = new ArrayList<>();
  private boolean cancelled;

  /**
   * Adds a request; it is cancelled at once if the others were.
   *
   * @return false if so
   */
  synchronized boolean add(GenerationHandle handle) {
    handles.add(handle);
    if (cancelled) {
      handle.cancel();
    }
    return !cancelled;
  }

  /** Ends all of them, and those to come; nothing happens to those that have ended. */
  synchronized void cancel() {
    cancelled = true;
    handles.forEach(GenerationHandle::cancel);
  }

  /** The requests added so far, in their order. */
  synchronized List<GenerationHandle> all() {
    return List.copyOf(handles);
  }
}
