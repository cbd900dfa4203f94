package dev.tacho.metrics.perf;

import java.math.BigInteger;

/** Products of sizes that may leave the range of a long on the way. */
final class Products {
  private Products() {}

  /** The exact product, rounded once. */
  static double rounded(long... factors) {
    long result = 1;
    for (int i = 0; i < factors.length; i++) {
      long high = Math.multiplyHigh(result, factors[i]);
      long low = result * factors[i];
      if (high != low >> 63) {
        return big(factors).doubleValue();
      }
      result = low;
    }
    return result;
  }

  /** The exact product; the largest long if it is larger than that. No factor is negative. */
  static long exact(long... factors) {
    long result = 1;
    for (int i = 0; i < factors.length; i++) {
      if (Math.multiplyHigh(result, factors[i]) != 0) {
        BigInteger large = big(factors);
        return large.bitLength() < Long.SIZE ? large.longValue() : Long.MAX_VALUE;
      }
      result *= factors[i];
    }
    return result < 0 ? Long.MAX_VALUE : result;
  }

  /**
   * Bytes of weights in some layers: exact, or with a fraction of a byte a weight, cut to whole bytes.
   *
   * @param weightBytes bytes of a weight
   * @param layers layers
   * @param sizes the product of these is the number of weights in a layer
   */
  static long weights(double weightBytes, long layers, long... sizes) {
    if (weightBytes == Math.rint(weightBytes)) {
      long perLayer = exact(sizes);
      return exact(perLayer, (long) weightBytes, layers);
    }
    return (long) (rounded(sizes) * weightBytes * layers);
  }

  private static BigInteger big(long[] factors) {
    BigInteger result = BigInteger.ONE;
    for (long factor : factors) {
      result = result.multiply(BigInteger.valueOf(factor));
    }
    return result;
  }
}
