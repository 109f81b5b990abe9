// F32: as many float32 as a register holds, and how they come from and go to memory. Included inside the namespace of an instruction
// set; `left` is how many numbers of a row are left from the address on (a whole register when more).

#if defined(__AVX512F__)

struct F32 {
    static constexpr int64_t width = 16;
    __m512 v;
    static F32 zero() { return {_mm512_setzero_ps()}; }
    static F32 all(float x) { return {_mm512_set1_ps(x)}; }
};

inline F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F32 max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline F32 min(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline F32 abs(F32 a) { return {_mm512_abs_ps(a.v)}; }
inline float reduce_add(F32 a) { return _mm512_reduce_add_ps(a.v); }
inline float reduce_max(F32 a) { return _mm512_reduce_max_ps(a.v); }

// Which of the numbers; what comes of a comparison with NaN is false.
using Mask = __mmask16;
inline Mask less(F32 a, F32 b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ); }
inline Mask at_least(F32 a, F32 b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ); }
inline uint32_t bits(Mask which) { return which; }
inline F32 select(Mask which, F32 yes, F32 no) { return {_mm512_mask_blend_ps(which, no.v, yes.v)}; }
inline F32 nearest(F32 a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
// a * 2^n for whole n.
inline F32 times_power(F32 a, F32 n) { return {_mm512_scalef_ps(a.v, n.v)}; }
inline F32 with_sign(F32 a, F32 sign) {
    return {_mm512_or_ps(_mm512_abs_ps(a.v), _mm512_and_ps(sign.v, _mm512_set1_ps(-0.0f)))};
}

inline __mmask16 first(int64_t left) { return left >= 16 ? __mmask16(0xffff) : __mmask16((1u << left) - 1); }

inline F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline F32 load(const float* p, int64_t left) { return {_mm512_maskz_loadu_ps(first(left), p)}; }
inline F32 widened(__m256i bits) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))}; }
inline F32 load(const bf16* p) { return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
inline F32 load(const bf16* p, int64_t left) { return widened(_mm256_maskz_loadu_epi16(first(left), p)); }

// Rounded to nearest, ties to even; NaN stays NaN.
inline __m256i narrowed(F32 a) {
#if defined(__AVX512BF16__)
    return (__m256i)_mm512_cvtneps_pbh(a.v);
#else
    const __m512i bits = _mm512_castps_si512(a.v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i near = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(near, nan, _mm512_set1_epi32(0x7fc0)));
#endif
}

// Whole numbers as int8, saturated.
inline void store_codes(int8_t* p, F32 whole) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(whole.v)));
}

inline void store(float* p, F32 a) { _mm512_storeu_ps(p, a.v); }
inline void store(float* p, F32 a, int64_t left) { _mm512_mask_storeu_ps(p, first(left), a.v); }
inline void store(bf16* p, F32 a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrowed(a)); }
inline void store(bf16* p, F32 a, int64_t left) { _mm256_mask_storeu_epi16(p, first(left), narrowed(a)); }

#else

struct F32 {
    static constexpr int64_t width = 8;
    __m256 v;
    static F32 zero() { return {_mm256_setzero_ps()}; }
    static F32 all(float x) { return {_mm256_set1_ps(x)}; }
};

inline F32 operator+(F32 a, F32 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm256_div_ps(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline F32 max(F32 a, F32 b) { return {_mm256_max_ps(a.v, b.v)}; }
inline F32 min(F32 a, F32 b) { return {_mm256_min_ps(a.v, b.v)}; }
inline F32 abs(F32 a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }

inline float reduce_add(F32 a) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
}
inline float reduce_max(F32 a) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
}

struct Mask {
    __m256 v;
};
inline Mask less(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask at_least(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)}; }
inline uint32_t bits(Mask which) { return static_cast<uint32_t>(_mm256_movemask_ps(which.v)); }
inline F32 select(Mask which, F32 yes, F32 no) { return {_mm256_blendv_ps(no.v, yes.v, which.v)}; }
inline F32 nearest(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
// In two steps, because 2^n alone may be beyond float32 where the product is not.
inline F32 times_power(F32 a, F32 n) {
    const __m256i whole = _mm256_cvtps_epi32(n.v);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i one = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i two = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
    return {_mm256_mul_ps(_mm256_mul_ps(a.v, _mm256_castsi256_ps(one)), _mm256_castsi256_ps(two))};
}
inline F32 with_sign(F32 a, F32 sign) {
    const __m256 bit = _mm256_set1_ps(-0.0f);
    return {_mm256_or_ps(_mm256_andnot_ps(bit, a.v), _mm256_and_ps(bit, sign.v))};
}

inline __m256i first(int64_t left) {
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(left >= 8 ? 8 : static_cast<int>(left)), places);
}

inline F32 load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline F32 load(const float* p, int64_t left) { return {_mm256_maskload_ps(p, first(left))}; }
inline F32 widened(__m128i bits) { return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))}; }
inline F32 load(const bf16* p) { return widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
inline F32 load(const bf16* p, int64_t left) {
    if (left >= 8) return load(p);
    bf16 copy[8] = {};
    for (int64_t i = 0; i < left; ++i) copy[i] = p[i];
    return load(copy);
}

// Rounded to nearest, ties to even; NaN stays NaN.
inline __m128i narrowed(F32 a) {
    const __m256i bits = _mm256_castps_si256(a.v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i near = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(near, _mm256_set1_epi32(0x7fc0), nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}

inline void store_codes(int8_t* p, F32 whole) {
    const __m256i ints = _mm256_cvtps_epi32(whole.v);
    const __m128i shorts = _mm_packs_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(shorts, shorts));
}

inline void store(float* p, F32 a) { _mm256_storeu_ps(p, a.v); }
inline void store(float* p, F32 a, int64_t left) { _mm256_maskstore_ps(p, first(left), a.v); }
inline void store(bf16* p, F32 a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrowed(a)); }
inline void store(bf16* p, F32 a, int64_t left) {
    if (left >= 8) return store(p, a);
    bf16 copy[8];
    store(copy, a);
    for (int64_t i = 0; i < left; ++i) p[i] = copy[i];
}

#endif

// The compiler may load what it needs several times from memory several times; after this it does not.
inline void in_register(F32& a) { asm("" : "+v"(a.v)); }

// What is left of `a` when it is stored as T and read again.
template <class T>
inline F32 rounded(F32 a);
template <>
inline F32 rounded<float>(F32 a) {
    return a;
}
template <>
inline F32 rounded<bf16>(F32 a) {
    return widened(narrowed(a));
}
