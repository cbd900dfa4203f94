package dev.tacho.metrics.collector;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** The adapters that open sequences use, in the order in which they came into use. One thread. */
final class AdapterTable {
  private final Map<Integer, Integer> openByAdapter = new LinkedHashMap<>();
  private boolean changed;

  /** A sequence was queued; 0 is no adapter. */
  void opened(int adapter) {
    if (adapter != 0 && openByAdapter.merge(adapter, 1, Integer::sum) == 1) {
      changed = true;
    }
  }

  /** A sequence ended. */
  void closed(int adapter) {
    if (adapter != 0 && openByAdapter.computeIfPresent(adapter, (key, open) -> open > 1 ? open - 1 : null) == null) {
      changed = true;
    }
  }

  /** True if other adapters are in use than when {@link #names} was asked last. */
  boolean hasChanged() {
    return changed;
  }

  /** Their names; a number whose name was lost is left out. */
  List<String> names(Map<Integer, String> byNumber) {
    changed = false;
    return openByAdapter.keySet().stream().map(byNumber::get).filter(Objects::nonNull).toList();
  }
}
