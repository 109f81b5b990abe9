// Included inside the namespace of an instruction set. Dot products of attention in units: a unit is 4 bytes, one float32 or two
// bfloat16 that are neighbours (of a row, or of a column), whose products are added to one float32.

// 2^x for x <= 0, 0 below -150, NaN stays NaN. Relative error: 8e-5 for weights that are rounded to bfloat16, which
// is a 25th of what the rounding adds, else 1e-7.
template <bool exact>
inline F32 power_of_two(F32 x) {
    x = max(F32::all(-200.0f), x);  // gives back its second argument when one is NaN
    const F32 n = nearest(x);
    const F32 f = x - n;
    F32 p;
    if constexpr (exact) {
        p = F32::all(0.000153458124f);
        p = fma(p, f, F32::all(0.00133999309f));
        p = fma(p, f, F32::all(0.00961848907f));
        p = fma(p, f, F32::all(0.0555032864f));
        p = fma(p, f, F32::all(0.240226462f));
        p = fma(p, f, F32::all(0.693147182f));
        p = fma(p, f, F32::all(1.0f));
    } else {
        p = F32::all(0.0551716685f);
        p = fma(p, f, F32::all(0.24261114f));
        p = fma(p, f, F32::all(0.693260968f));
        p = fma(p, f, F32::all(0.999928057f));
    }
    return times_power(p, n);
}

#if defined(__AVX512F__)
inline F32 load(const int8_t* p) { return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))}; }
inline F32 load(const int8_t* p, int64_t left) { return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first(left), p)))}; }
#else
inline F32 load(const int8_t* p) { return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))}; }
inline F32 load(const int8_t* p, int64_t left) {
    if (left >= 8) return load(p);
    int8_t copy[8] = {};
    for (int64_t i = 0; i < left; ++i) copy[i] = p[i];
    return load(copy);
}
#endif

// A unit is a float32. Kv: what keys and values are stored as.
template <class Kv>
struct Singles {
    using Stored = Kv;
    static constexpr int64_t pack = 1;
    static constexpr bool exact = true;
    static F32 dot(F32 sum, F32 a, F32 b) { return fma(a, b, sum); }
    // Units of neighbours in a row; `left` numbers are left of it.
    template <class N>
    static F32 row(const N* p) {
        return load(p);
    }
    template <class N>
    static F32 row(const N* p, int64_t left) {
        return load(p, left);
    }
    // Units of a number of each row, made from `pack` rows (the second is not used here).
    static void column_units(F32 row, F32, F32 (&units)[1]) { units[0] = row; }
    static F32 weights(F32 even, F32) { return even; }
};

#if defined(__AVX512BF16__)

inline F32 two_rounded(F32 low, F32 high) { return {(__m512)_mm512_cvtne2ps_pbh(high.v, low.v)}; }
inline F32 as_units(__m512i bits) { return {_mm512_castsi512_ps(bits)}; }

inline __m512i interleaving(int from) {
    alignas(64) static constexpr uint16_t places[2][32] = {
        {0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    return _mm512_load_si512(places[from]);
}

// A unit is two bfloat16.
template <class Kv>
struct Pairs {
    using Stored = Kv;
    static constexpr int64_t pack = 2;
    static constexpr bool exact = false;
    static F32 dot(F32 sum, F32 a, F32 b) { return {_mm512_dpbf16_ps(sum.v, (__m512bh)a.v, (__m512bh)b.v)}; }
    static F32 row(const bf16* p) { return as_units(_mm512_loadu_si512(p)); }
    static F32 row(const bf16* p, int64_t left) {
        return as_units(_mm512_maskz_loadu_epi16(left >= 32 ? 0xffffffffu : (1u << left) - 1, p));
    }
    // Whole numbers up to 127 are exact in bfloat16.
    static F32 row(const int8_t* p) { return two_rounded(load(p), load(p + 16)); }
    static F32 row(const int8_t* p, int64_t left) { return two_rounded(load(p, left), left > 16 ? load(p + 16, left - 16) : F32::zero()); }
    static void column_units(F32 even, F32 odd, F32 (&units)[2]) {
        const __m512i a = _mm512_castps_si512(even.v), b = _mm512_castps_si512(odd.v);
        units[0] = as_units(_mm512_permutex2var_epi16(a, interleaving(0), b));
        units[1] = as_units(_mm512_permutex2var_epi16(a, interleaving(1), b));
    }
    static F32 weights(F32 even, F32 odd) {
        const __m512i both = _mm512_castps_si512(two_rounded(even, odd).v);
        const __m512i halves = _mm512_setr_epi32(0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007, 0x180008,
                                                 0x190009, 0x1a000a, 0x1b000b, 0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f);
        return as_units(_mm512_permutexvar_epi16(halves, both));
    }
};

#endif

// How T (numbers of queries and results) and Kv (of keys and values) are multiplied.
template <class T, class Kv>
struct MathOf {
    using Type = Singles<Kv>;
};
#if defined(__AVX512BF16__)
template <class Kv>
struct MathOf<bf16, Kv> {
    using Type = Pairs<Kv>;
};
#endif

// What a product of a query and a key becomes: a score times log2(e), so that weights are powers of two.
struct Scoring {
    float scale, softcap;  // softcap 0: none
    static constexpr float log2e = 1.44269504f;

    // Whether scores are products times `factor`, in the same order.
    bool only_scaled() const { return softcap == 0.0f && scale >= 0.0f; }
    float factor() const { return scale * log2e; }

    F32 operator()(F32 product) const {
        if (softcap == 0.0f) return product * F32::all(factor());
        return tanh(product * F32::all(scale / softcap)) * F32::all(softcap * log2e);
    }
};

constexpr float hidden_score = -3e38f;  // of a key that a query does not see: its weight is exactly 0 beside any largest score
constexpr float lowest_score = -1e30f;  // what the largest score of a row begins with: finite, because infinity - infinity is NaN
