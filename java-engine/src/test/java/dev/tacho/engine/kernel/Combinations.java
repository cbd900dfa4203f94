package dev.tacho.engine.kernel;

import java.util.ArrayList;
import java.util.List;

/** Combinations of a value of each of several parameters, as indices: all of them, or enough to meet every pair. */
final class Combinations {
  private Combinations() {}

  static List<int[]> all(int... sizes) {
    List<int[]> cases = new ArrayList<>();
    int[] at = new int[sizes.length];
    while (true) {
      cases.add(at.clone());
      int i = sizes.length - 1;
      while (i >= 0 && ++at[i] == sizes[i]) {
        at[i--] = 0;
      }
      if (i < 0) {
        return cases;
      }
    }
  }

  /** A small set in which any two values of any two parameters occur together; the same one every time. */
  static List<int[]> pairwise(int... sizes) {
    List<int[]> candidates = all(sizes);
    boolean[][][][] met = new boolean[sizes.length][sizes.length][][];
    for (int i = 0; i < sizes.length; i++) {
      for (int j = i + 1; j < sizes.length; j++) {
        met[i][j] = new boolean[sizes[i]][sizes[j]];
      }
    }
    List<int[]> cases = new ArrayList<>();
    while (true) {
      int[] best = candidates.getFirst();
      for (int[] candidate : candidates) {
        best = unmet(candidate, met) > unmet(best, met) ? candidate : best;
      }
      if (unmet(best, met) == 0) {
        return cases;
      }
      cases.add(best);
      for (int i = 0; i < best.length; i++) {
        for (int j = i + 1; j < best.length; j++) {
          met[i][j][best[i]][best[j]] = true;
        }
      }
    }
  }

  private static int unmet(int[] candidate, boolean[][][][] met) {
    int pairs = 0;
    for (int i = 0; i < candidate.length; i++) {
      for (int j = i + 1; j < candidate.length; j++) {
        pairs += met[i][j][candidate[i]][candidate[j]] ? 0 : 1;
      }
    }
    return pairs;
  }
}
