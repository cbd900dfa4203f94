/* exp, exp2 and tanh of sixteen floats. */
#ifndef TACHO_CPU_KERNELS_MATH_H
#define TACHO_CPU_KERNELS_MATH_H

#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/*
 * e^x within 2 ulp: x = n ln 2 + r, |r| <= ln 2 / 2, e^x = 2^n p(r) with the Taylor polynomial of degree 7, whose rest
 * is below 6e-9. ln 2 is taken off in two steps, the first of which is exact. Beyond [-104, 89], where floats end, it
 * is 0 and infinity; NaN stays NaN.
 */
TACHO_INLINE Vec exp(Vec x) {
    x = min(broadcast(89.0f), max(broadcast(-104.0f), x));
    const Vec n = round(mul(x, broadcast(1.44269504f)));
    Vec r = fma(n, broadcast(-0.693359375f), x);
    r = fma(n, broadcast(2.12194440e-4f), r);
    Vec p = broadcast(1.0f / 5040);
    p = fma(p, r, broadcast(1.0f / 720));
    p = fma(p, r, broadcast(1.0f / 120));
    p = fma(p, r, broadcast(1.0f / 24));
    p = fma(p, r, broadcast(1.0f / 6));
    p = fma(p, r, broadcast(0.5f));
    p = fma(p, r, broadcast(1.0f));
    p = fma(p, r, broadcast(1.0f));
    return scale_pow2(p, n);
}

/*
 * 2^x within 2 ulp for x <= 128: x = n + r, |r| <= 1/2, 2^x = 2^n p(r) with p interpolating 2^r at the Chebyshev nodes
 * of degree 6, whose relative error is below 2e-8. 0 below -150, where floats end; NaN stays NaN.
 */
TACHO_INLINE Vec exp2(Vec x) {
    x = max(broadcast(-200.0f), x);
    const Vec n = round(x);
    const Vec r = sub(x, n);
    Vec p = broadcast(0.00015461444854736328f);
    p = fma(p, r, broadcast(0.0013400427997112274f));
    p = fma(p, r, broadcast(0.009618056938052177f));
    p = fma(p, r, broadcast(0.05550327152013779f));
    p = fma(p, r, broadcast(0.24022650718688965f));
    p = fma(p, r, broadcast(0.6931471824645996f));
    p = fma(p, r, broadcast(1.0f));
    return scale_pow2(p, n);
}

/*
 * tanh x within 1e-7 of itself near 0, within 2e-7 elsewhere: the odd series up to x^9 where x^2 < 1/16 (its rest is
 * below 1e-8 of x), else 1 - 2 / (e^2x + 1).
 */
TACHO_INLINE Vec tanh(Vec x) {
    const Vec square = mul(x, x);
    Vec p = broadcast(62.0f / 2835);
    p = fma(p, square, broadcast(-17.0f / 315));
    p = fma(p, square, broadcast(2.0f / 15));
    p = fma(p, square, broadcast(-1.0f / 3));
    const Vec near_zero = fma(mul(p, square), x, x);
    const Vec grown = add(exp(add(x, x)), broadcast(1.0f));
    const Vec far = sub(broadcast(1.0f), div(broadcast(2.0f), grown));
    return select_less(square, broadcast(1.0f / 16), near_zero, far);
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
