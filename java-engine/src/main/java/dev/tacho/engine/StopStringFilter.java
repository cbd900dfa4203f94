package dev.tacho.engine;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds stop strings in text that comes in pieces, and holds back what may turn out to be the beginning of one. The
 * string that is complete first ends the text, the one that began first if two are complete at once; where the pieces
 * end makes no difference. One thread.
 */
final class StopStringFilter {
  private final List<String> stops;
  private final StringBuilder held = new StringBuilder();
  private @Nullable String found;

  /**
   * @param stops the stop strings, none of them empty
   */
  StopStringFilter(List<String> stops) {
    this.stops = stops;
  }

  /** The text that is safe to show now, which does not reach into a stop string. */
  String append(String text) {
    if (stops.isEmpty()) {
      return text;
    }
    held.append(text);
    int begin = -1;
    int end = Integer.MAX_VALUE;
    for (String stop : stops) {
      int at = held.indexOf(stop);
      if (at >= 0 && (at + stop.length() < end || (at + stop.length() == end && at < begin))) {
        begin = at;
        end = at + stop.length();
        found = stop;
      }
    }
    int safe = found != null ? begin : held.length() - longestBeginning();
    String shown = held.substring(0, safe);
    held.delete(0, safe);
    return shown;
  }

  /** Text that is not looked at: what was held back and this. For tokens before {@code min_tokens}, and for the end. */
  String pass(String text) {
    if (held.isEmpty()) {
      return text;
    }
    String shown = held.append(text).toString();
    held.setLength(0);
    return shown;
  }

  /** The stop string that was found, or null. */
  @Nullable String found() {
    return found;
  }

  /** Length of the longest end of the held text that a stop string begins with. */
  private int longestBeginning() {
    int longest = 0;
    for (String stop : stops) {
      for (int n = Math.min(stop.length() - 1, held.length()); n > longest; n--) {
        if (held.indexOf(stop.substring(0, n), held.length() - n) >= 0) {
          longest = n;
        }
      }
    }
    return longest;
  }
}
