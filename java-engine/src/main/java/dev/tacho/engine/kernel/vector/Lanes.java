package dev.tacho.engine.kernel.vector;

import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * The vector shapes in use: as many floats as the machine prefers, and as many ints and 16-bit elements.
 *
 * <p>Rules of this package, for what C2 does with vectors. Species are {@code static final}. No method of ours takes or
 * returns a vector (a test holds that): C2 inlines the JDK's methods always, ours only within limits that depend on
 * what it has compiled before, and a vector that crosses a call which stays a call is an object on the heap. So vectors
 * go from method to method through memory. No vector comes from either side of a branch.
 *
 * <p>Sums over the lanes of a vector are not taken with {@code reduceLanes(ADD)}, whose order may change when the JIT
 * compiles; kernels store the lanes and add them up in order.
 */
final class Lanes {
  static final VectorSpecies<Float> FLOATS = FloatVector.SPECIES_PREFERRED;
  static final int COUNT = FLOATS.length();
  static final int BYTES = COUNT * Float.BYTES;
  static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;

  static final VectorSpecies<Integer> INTS = VectorSpecies.of(int.class, FLOATS.vectorShape());
  static final VectorSpecies<Short> HALVES =
      VectorSpecies.of(short.class, VectorShape.forBitSize(COUNT * Short.SIZE));

  private Lanes() {}
}
