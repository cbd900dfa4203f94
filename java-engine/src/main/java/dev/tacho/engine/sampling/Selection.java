package dev.tacho.engine.sampling;

/** Finds the k-th largest of many values without sorting them. */
final class Selection {
  private Selection() {}

  /**
   * The k-th largest value (quickselect; the pivot is the median of three, so sorted input is not the worst case).
   *
   * @param values overwritten: partly ordered; no NaN
   * @param size values that count, at least {@code k}
   * @param k from 1
   */
  static float largest(float[] values, int size, int k) {
    int low = 0;
    int high = size - 1;
    int wanted = k - 1;
    while (low < high) {
      float pivot = median(values[low], values[(low + high) >>> 1], values[high]);
      int i = low;
      int j = high;
      while (i <= j) {
        while (values[i] > pivot) {
          i++;
        }
        while (values[j] < pivot) {
          j--;
        }
        if (i <= j) {
          float value = values[i];
          values[i++] = values[j];
          values[j--] = value;
        }
      }
      if (wanted <= j) {
        high = j;
      } else if (wanted >= i) {
        low = i;
      } else {
        return pivot;
      }
    }
    return values[wanted];
  }

  private static float median(float a, float b, float c) {
    return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
  }
}
