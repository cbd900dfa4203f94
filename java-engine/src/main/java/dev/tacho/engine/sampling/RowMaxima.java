package dev.tacho.engine.sampling;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The largest logit of each row of a step, as far as it has been looked at: columns are folded in piece by piece, by
 * several members each into its own, whose results are then merged. In which order and by whom does not change a
 * result. A NaN counts as minus infinity. A row by one thread at a time, others may be at other rows; allocates nothing
 * after it was made.
 */
public final class RowMaxima {
  private final float[] values;
  private final int[] ids;
  private final boolean[] nans;

  /**
   * @param rows most rows of a step
   */
  public RowMaxima(int rows) {
    values = new float[rows];
    ids = new int[rows];
    nans = new boolean[rows];
  }

  /** Forgets what a row had. */
  public void clear(int row) {
    values[row] = Float.NEGATIVE_INFINITY;
    ids[row] = 0;
    nans[row] = false;
  }

  /**
   * Takes some columns of a row in.
   *
   * @param row its number
   * @param logits f32
   * @param firstElement where the row begins
   * @param begin the first column
   * @param end the column after the last
   */
  public void fold(int row, MemorySegment logits, long firstElement, int begin, int end) {
    float best = Float.NEGATIVE_INFINITY;
    int id = 0;
    boolean nan = false;
    for (int column = begin; column < end; column++) {
      float logit = logits.getAtIndex(ValueLayout.JAVA_FLOAT, firstElement + column);
      // Also true of a NaN, so that all columns but a few pass with one comparison.
      if (!(logit <= best)) {
        if (Float.isNaN(logit)) {
          nan = true;
        } else {
          best = logit;
          id = column;
        }
      }
    }
    take(row, best, id, nan);
  }

  /** Takes in what another one has of a row. */
  public void merge(int row, RowMaxima other) {
    take(row, other.values[row], other.ids[row], other.nans[row]);
  }

  private void take(int row, float value, int id, boolean nan) {
    if (value > values[row] || (value == values[row] && id < ids[row])) {
      values[row] = value;
      ids[row] = id;
    }
    nans[row] |= nan;
  }

  /** Column of the largest logit, the lowest at a tie; 0 if all are minus infinity. */
  public int id(int row) {
    return ids[row];
  }

  /** True if a column held a NaN. */
  public boolean sawNan(int row) {
    return nans[row];
  }
}
