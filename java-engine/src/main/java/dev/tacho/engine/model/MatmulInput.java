package dev.tacho.engine.model;

import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.ActivationRows;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.Map;

/**
 * Rows that matmuls read, in each form that they can have: the floats themselves and packed forms. Packed memory is
 * shared by all inputs of a step, so one input's is good until the next is packed. Immutable.
 */
final class MatmulInput {
  private final MemorySegment floats;
  private final int k;
  private final Map<ActivationFormat, ActivationRows> forms = new EnumMap<>(ActivationFormat.class);

  /**
   * @param floats [rows][k]
   * @param k elements of a row
   * @param packed memory of each packed form
   */
  MatmulInput(MemorySegment floats, int k, Map<ActivationFormat, Activations.PackedMemory> packed) {
    this.floats = floats;
    this.k = k;
    forms.put(ActivationFormat.FLOAT32, ActivationRows.floats(floats, k, k));
    packed.forEach(
        (format, memory) -> {
          if (k % format.blockElements() == 0) {
            forms.put(format, memory.rows(format, k));
          }
        });
  }

  /** The rows as floats. */
  MemorySegment floats() {
    return floats;
  }

  /** Elements of a row. */
  int k() {
    return k;
  }

  /** The rows in a form. */
  ActivationRows as(ActivationFormat format) {
    ActivationRows rows = forms.get(format);
    if (rows == null) {
      throw new IllegalStateException("rows of " + k + " elements cannot be " + format);
    }
    return rows;
  }
}
