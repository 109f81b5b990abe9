// I32: as many int32 as a register holds, and sums of products of bytes in them. Included inside the namespace of an instruction set.

#if defined(__AVX512F__)

struct I32 {
    __m512i v;
    static I32 all(int32_t x) { return {_mm512_set1_epi32(x)}; }
};
inline I32 load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
inline F32 to_float(I32 a) { return {_mm512_cvtepi32_ps(a.v)}; }
inline F32 load_halves(const uint16_t* p) { return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))}; }
inline void store_halves(uint16_t* p, F32 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline I32 as_bits(F32 a) { return {_mm512_castps_si512(a.v)}; }
inline I32 max(I32 a, I32 b) { return {_mm512_max_epi32(a.v, b.v)}; }
inline int32_t reduce_max(I32 a) { return _mm512_reduce_max_epi32(a.v); }
inline I32 operator&(I32 a, I32 b) { return {_mm512_and_si512(a.v, b.v)}; }
inline I32 operator+(I32 a, I32 b) { return {_mm512_add_epi32(a.v, b.v)}; }
// Of 16-bit numbers: shifts, and sums of two neighbouring products.
template <int count>
inline I32 shorts_right(I32 a) { return {_mm512_srli_epi16(a.v, count)}; }
template <int count>
inline I32 shorts_left(I32 a) { return {_mm512_slli_epi16(a.v, count)}; }
template <int count>
inline I32 signed_shorts_right(I32 a) { return {_mm512_srai_epi16(a.v, count)}; }
inline I32 pairs_of_shorts(I32 a, I32 b) { return {_mm512_madd_epi16(a.v, b.v)}; }
// Sums of two neighbouring products of an unsigned and a signed byte, as int16: they must fit.
inline I32 pairs_of_bytes(I32 a, I32 b) { return {_mm512_maddubs_epi16(a.v, b.v)}; }

#else

struct I32 {
    __m256i v;
    static I32 all(int32_t x) { return {_mm256_set1_epi32(x)}; }
};
inline I32 load(const int32_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}; }
inline F32 to_float(I32 a) { return {_mm256_cvtepi32_ps(a.v)}; }
inline F32 load_halves(const uint16_t* p) { return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))}; }
inline void store_halves(uint16_t* p, F32 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline I32 as_bits(F32 a) { return {_mm256_castps_si256(a.v)}; }
inline I32 max(I32 a, I32 b) { return {_mm256_max_epi32(a.v, b.v)}; }
inline int32_t reduce_max(I32 a) {
    __m128i x = _mm_max_epi32(_mm256_castsi256_si128(a.v), _mm256_extracti128_si256(a.v, 1));
    x = _mm_max_epi32(x, _mm_unpackhi_epi64(x, x));
    return _mm_cvtsi128_si32(_mm_max_epi32(x, _mm_shuffle_epi32(x, 1)));
}
inline I32 operator&(I32 a, I32 b) { return {_mm256_and_si256(a.v, b.v)}; }
inline I32 operator+(I32 a, I32 b) { return {_mm256_add_epi32(a.v, b.v)}; }
template <int count>
inline I32 shorts_right(I32 a) { return {_mm256_srli_epi16(a.v, count)}; }
template <int count>
inline I32 shorts_left(I32 a) { return {_mm256_slli_epi16(a.v, count)}; }
template <int count>
inline I32 signed_shorts_right(I32 a) { return {_mm256_srai_epi16(a.v, count)}; }
inline I32 pairs_of_shorts(I32 a, I32 b) { return {_mm256_madd_epi16(a.v, b.v)}; }
inline I32 pairs_of_bytes(I32 a, I32 b) { return {_mm256_maddubs_epi16(a.v, b.v)}; }

#endif

inline float from_bits(int32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
