package dev.tacho.metrics.event;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.ObjIntConsumer;

/**
 * The numbers of the names that a writer uses. There are {@value EventDescriptor#MAX_NAMES} of them; when all are given
 * out, a new name gets the number of the one that was not asked for for the longest time. One thread; allocates for new
 * names only.
 */
final class NameTable {
  /** Unknown. */
  static final int NONE = 0;

  private final Map<String, Integer> numbers = new LinkedHashMap<>(16, 0.75f, true);

  /** The number of a name, from 1, or {@link #NONE}. */
  int find(String name) {
    Integer number = numbers.get(name);
    return number == null ? NONE : number;
  }

  /** Gives a number to a name that has none. */
  int add(String name) {
    int number = numbers.size() + 1;
    if (number > EventDescriptor.MAX_NAMES) {
      Map.Entry<String, Integer> oldest = numbers.entrySet().iterator().next();
      number = oldest.getValue();
      numbers.remove(oldest.getKey());
    }
    numbers.put(name, number);
    return number;
  }

  /** Calls with every name and its number. */
  void forEach(ObjIntConsumer<String> call) {
    numbers.forEach(call::accept);
  }
}
