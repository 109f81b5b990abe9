// Functions of float32 vectors. Included inside the namespace of an instruction set, after f32.h. Coefficients: least largest error over
// the stated range, fitted in double precision to scipy's functions. Errors are measured in tests/kernels/native/test_functions.py.

// e^x within 1 ulp; 0 below -104, infinity above 88.73, NaN stays NaN.
inline F32 exp(F32 x) {
    // min and max give back their second argument when one is NaN.
    x = max(F32::all(-110.0f), min(F32::all(100.0f), x));
    const F32 n = nearest(x * F32::all(1.44269504f));
    // x - n ln 2, with ln 2 in two parts, the first of which n * is exact.
    const F32 r = fma(n, F32::all(-1.4286068e-6f), fma(n, F32::all(-0.69314575f), x));
    F32 p = F32::all(0.0013814596f);
    p = fma(p, r, F32::all(0.0083687175f));
    p = fma(p, r, F32::all(0.041668389f));
    p = fma(p, r, F32::all(0.16666521f));
    p = fma(p, r, F32::all(0.49999994f));
    return times_power(fma(r * r, p, r) + F32::all(1.0f), n);
}

// 1 / (1 + e^-x).
inline F32 sigmoid(F32 x) { return F32::all(1.0f) / (F32::all(1.0f) + exp(F32::zero() - x)); }

inline F32 tanh(F32 x) {
    const F32 size = abs(x);
    const F32 z = x * x;
    F32 p = F32::all(-0.0057049743f);
    p = fma(p, z, F32::all(0.020639075f));
    p = fma(p, z, F32::all(-0.053739712f));
    p = fma(p, z, F32::all(0.13331442f));
    p = fma(p, z, F32::all(-0.33333281f));
    const F32 near = fma(z * x, p, x);  // up to 0.625
    const F32 far = F32::all(1.0f) - F32::all(2.0f) / (exp(size + size) + F32::all(1.0f));
    return select(less(size, F32::all(0.625f)), near, with_sign(far, x));
}

// 2^y for y up to 0.
inline F32 power_of_two(F32 y) {
    const F32 n = nearest(y);
    const F32 r = y - n;
    F32 p = F32::all(0.000153533605f);
    p = fma(p, r, F32::all(0.0013398875f));
    p = fma(p, r, F32::all(0.00961843692f));
    p = fma(p, r, F32::all(0.0555033237f));
    p = fma(p, r, F32::all(0.240226477f));
    p = fma(p, r, F32::all(0.693147182f));
    return times_power(fma(p, r, F32::all(1.0f)), n);
}

// The probability of a number below x under the normal distribution: (1 + erf(x / sqrt 2)) / 2, without its cancellation below 0. The
// polynomial is log2 of the probability of a number above a, up to 7, where it is 1.3e-12; beyond it is taken to be 0.
inline F32 normal_probability(F32 x) {
    const F32 a = abs(x);
    F32 p = F32::all(-1.4586285e-10f);
    p = fma(p, a, F32::all(7.14728809e-9f));
    p = fma(p, a, F32::all(-1.57158752e-7f));
    p = fma(p, a, F32::all(2.04157027e-6f));
    p = fma(p, a, F32::all(-1.72463297e-5f));
    p = fma(p, a, F32::all(9.62800113e-5f));
    p = fma(p, a, F32::all(-0.000315738725f));
    p = fma(p, a, F32::all(3.25633737e-5f));
    p = fma(p, a, F32::all(0.00694275415f));
    p = fma(p, a, F32::all(-0.052456405f));
    p = fma(p, a, F32::all(-0.459211081f));
    p = fma(p, a, F32::all(-1.15110588f));
    p = fma(p, a, F32::all(-0.99999994f));
    const F32 tail = select(less(F32::all(7.0f), a), F32::zero(), power_of_two(p));
    return select(less(x, F32::zero()), tail, F32::all(1.0f) - tail);
}
