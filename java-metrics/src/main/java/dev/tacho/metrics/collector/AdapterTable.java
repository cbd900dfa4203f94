package dev.tacho.metrics.collector;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The adapters that open sequences use, in the order in which they came into use. One thread. */
final class AdapterTable {
  private final Map<String, Integer> openByAdapter = new LinkedHashMap<>();
  private boolean changed;

  /** A sequence was queued; null is no adapter, or one whose name was lost. */
  void opened(@Nullable String adapter) {
    if (adapter != null && openByAdapter.merge(adapter, 1, Integer::sum) == 1) {
      changed = true;
    }
  }

  /** A sequence ended. */
  void closed(@Nullable String adapter) {
    if (adapter != null && openByAdapter.computeIfPresent(adapter, (key, open) -> open > 1 ? open - 1 : null) == null) {
      changed = true;
    }
  }

  /** True if other adapters are in use than when {@link #names} was asked last. */
  boolean hasChanged() {
    return changed;
  }

  /** Their names. */
  List<String> names() {
    changed = false;
    return List.copyOf(openByAdapter.keySet());
  }
}
