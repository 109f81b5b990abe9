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

// 1 - erf(t) for t >= 0.9: e^ of a polynomial up to 5.6, beyond it 0 (the true value is below 3e-15).
inline F32 erfc_far(F32 t) {
    F32 p = F32::all(-9.5343651e-8f);
    p = fma(p, t, F32::all(3.6908514e-6f));
    p = fma(p, t, F32::all(-6.5078057e-5f));
    p = fma(p, t, F32::all(0.00069581444f));
    p = fma(p, t, F32::all(-0.0050773826f));
    p = fma(p, t, F32::all(0.027069932f));
    p = fma(p, t, F32::all(-0.11091751f));
    p = fma(p, t, F32::all(-0.63117188f));
    p = fma(p, t, F32::all(-1.1305114f));
    p = fma(p, t, F32::all(0.000368463f));
    return select(less(F32::all(5.6f), t), F32::zero(), exp(p));
}

// erf(x) for |x| <= 0.93.
inline F32 erf_near(F32 x) {
    const F32 z = x * x;
    F32 p = F32::all(-0.00059537392f);
    p = fma(p, z, F32::all(0.0049859402f));
    p = fma(p, z, F32::all(-0.02676172f));
    p = fma(p, z, F32::all(0.11281683f));
    p = fma(p, z, F32::all(-0.3761248f));
    p = fma(p, z, F32::all(0.12837915f));
    return fma(p, x, x);
}

inline F32 erf(F32 x) {
    const F32 t = abs(x);
    return select(less(t, F32::all(0.92f)), erf_near(x), with_sign(F32::all(1.0f) - erfc_far(t), x));
}

// The probability of a number below x under the normal distribution: (1 + erf(x / sqrt 2)) / 2, without its cancellation below 0.
inline F32 normal_probability(F32 x) {
    const F32 y = x * F32::all(0.70710678f);
    const F32 t = abs(y);
    const F32 half = F32::all(0.5f);
    const F32 tail = half * erfc_far(t);
    const F32 far = select(less(x, F32::zero()), tail, F32::all(1.0f) - tail);
    return select(less(t, F32::all(0.92f)), fma(half, erf_near(y), half), far);
}
