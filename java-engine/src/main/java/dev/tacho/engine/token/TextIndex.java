package dev.tacho.engine.token;

import dev.tacho.engine.format.GgufStrings;
import java.util.Arrays;

/** Finds texts by their bytes: a table of the first one of each, in open addressing. Immutable, for any thread. */
final class TextIndex {
  private static final long MULTIPLIER = 0x9e37_79b9_7f4a_7c15L;

  private final GgufStrings texts;
  /** One more than the index of a text; 0 is a free place. */
  private final int[] places;

  private final boolean[] first;

  TextIndex(GgufStrings texts) {
    this.texts = texts;
    this.first = new boolean[texts.size()];
    this.places = new int[Integer.highestOneBit(Math.max(1, Math.min(texts.size(), 1 << 28))) << 2];
    byte[] bytes = texts.bytes();
    for (int i = 0; i < first.length; i++) {
      int place = placeOf(bytes, texts.start(i), texts.end(i));
      if (places[place] == 0) {
        places[place] = i + 1;
        first[i] = true;
      }
    }
  }

  /** The first text of these bytes, or -1. */
  int find(byte[] bytes, int from, int to) {
    return places[placeOf(bytes, from, to)] - 1;
  }

  /** Whether no text before this one is the same. */
  boolean isFirst(int index) {
    return first[index];
  }

  /** Where a text stands, or would stand. */
  private int placeOf(byte[] bytes, int from, int to) {
    long hash = 0;
    for (int i = from; i < to; i++) {
      hash = (hash + bytes[i]) * MULTIPLIER;
    }
    int mask = places.length - 1;
    int place = (int) (hash >>> Integer.SIZE) & mask;
    byte[] all = texts.bytes();
    while (places[place] != 0) {
      int other = places[place] - 1;
      if (Arrays.equals(bytes, from, to, all, texts.start(other), texts.end(other))) {
        break;
      }
      place = (place + 1) & mask;
    }
    return place;
  }
}
