package dev.tacho.engine;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.CancellationException;
import org.jspecify.annotations.Nullable;

/** The deltas of a request for one reader, which waits in {@code hasNext}. Interrupting it cancels the request. */
final class DeltaIterator implements Iterator<TokenDelta> {
  private final Generation generation;
  private @Nullable TokenDelta ahead;
  private boolean ended;

  DeltaIterator(Generation generation) {
    this.generation = generation;
  }

  @Override
  public boolean hasNext() {
    if (ahead == null && !ended) {
      try {
        ahead = generation.mailbox().take();
        ended = ahead == null;
      } catch (InterruptedException e) {
        generation.cancel();
        Thread.currentThread().interrupt();
        throw new CancellationException("interrupted while waiting for request " + generation.requestId());
      }
    }
    return ahead != null;
  }

  @Override
  public TokenDelta next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    TokenDelta delta = ahead;
    ahead = null;
    if (delta == null) {
      throw new NoSuchElementException();
    }
    return delta;
  }
}
