package dev.tacho.engine.scheduler;

import java.util.HashMap;
import java.util.Map;

/**
 * Counts the LoRA adapters of the running sequences, so that no more are in use than the runner has places for. The
 * base model alone needs no place.
 */
final class AdapterBudget {
  private static final class Users {
    int count;
  }

  private final int maxLoras;
  private final Map<String, Users> users = new HashMap<>();
  private int inUse;

  /**
   * @param maxLoras different adapters at most; 0 for no limit
   */
  AdapterBudget(int maxLoras) {
    this.maxLoras = maxLoras;
  }

  /** True if the sequence may run beside those that run. */
  boolean admits(Sequence sequence) {
    if (maxLoras == 0 || sequence.adapterName().isEmpty() || inUse < maxLoras) {
      return true;
    }
    Users own = users.get(sequence.adapterName());
    return own != null && own.count > 0;
  }

  void started(Sequence sequence) {
    if (maxLoras > 0 && !sequence.adapterName().isEmpty()) {
      Users own = users.computeIfAbsent(sequence.adapterName(), name -> new Users());
      if (own.count++ == 0) {
        inUse++;
      }
    }
  }

  void stopped(Sequence sequence) {
    if (maxLoras > 0 && !sequence.adapterName().isEmpty()) {
      Users own = users.get(sequence.adapterName());
      if (own != null && --own.count == 0) {
        users.remove(sequence.adapterName());
        inUse--;
      }
    }
  }
}
