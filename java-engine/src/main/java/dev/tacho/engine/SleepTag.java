package dev.tacho.engine;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** What a sleeping engine has given up, and gets back one by one or all at once. */
public enum SleepTag {
  /** The model's weights, at levels 1 and 2; at level 1 they have stayed where they are. */
  WEIGHTS,
  /** The KV cache, at levels 1 and 2. */
  KV_CACHE,
  /** The scheduling of steps, at level 0. */
  SCHEDULING;

  /** The tag in lower case, as HTTP clients write it. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * The tag of a label.
   *
   * @throws InvalidRequestException if there is none; names those there are
   */
  public static SleepTag of(String label) {
    for (SleepTag tag : values()) {
      if (tag.label().equals(label)) {
        return tag;
      }
    }
    throw new InvalidRequestException(
        "tags",
        "must be of " + Arrays.stream(values()).map(SleepTag::label).collect(Collectors.joining(", "))
            + ", is '" + label + "'");
  }
}
