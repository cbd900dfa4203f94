package dev.tacho.engine;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/** Resources that are closed together, the last one pushed first, all of them even if one fails. One thread. */
final class CloseStack implements AutoCloseable {
  private final Deque<AutoCloseable> resources = new ArrayDeque<>();

  /** Adds a resource and returns it. */
  <T extends AutoCloseable> T push(T resource) {
    resources.push(resource);
    return resource;
  }

  /** Gives the resources up without closing them: somebody else owns them now. */
  void release() {
    resources.clear();
  }

  @Override
  public void close() {
    RuntimeException first = null;
    while (!resources.isEmpty()) {
      first = close(resources.pop(), first);
    }
    if (first != null) {
      throw first;
    }
  }

  private static @Nullable RuntimeException close(AutoCloseable resource, @Nullable RuntimeException earlier) {
    try {
      resource.close();
      return earlier;
    } catch (Exception e) {
      RuntimeException failure = e instanceof RuntimeException r ? r : new IllegalStateException(e);
      if (earlier == null) {
        return failure;
      }
      earlier.addSuppressed(failure);
      return earlier;
    }
  }
}
