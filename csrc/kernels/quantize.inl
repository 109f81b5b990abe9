// Included inside the namespace of an instruction set.

// Four bytes for every number: as many int8 as F32 has numbers, saturated; the numbers are whole.
inline void store_codes(int8_t* codes, F32 whole) {
#if defined(__AVX512F__)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(whole.v)));
#else
    const __m256i ints = _mm256_cvtps_epi32(whole.v);
    const __m128i shorts = _mm_packs_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(codes), _mm_packs_epi16(shorts, shorts));
#endif
}

// Row `row` of `to`: what value(i, left) gives for the registers of a row of n numbers, zero beyond n. It is asked twice for each.
template <class Value>
inline void quantize_row(const QuantizedRows& to, int64_t row, int64_t n, Value&& value) {
    F32 largest = F32::zero();
    F32 zeros = F32::zero();  // stays zero unless a number is not finite, which max would not always show
    for (int64_t i = 0; i < n; i += F32::width) {
        const F32 v = value(i, n - i);
        largest = max(largest, abs(v));
        zeros = fma(v, F32::zero(), zeros);
    }
    const float top = reduce_max(largest);
    const float spoilt = reduce_add(zeros);
    to.scales[row] = top / 127.0f + spoilt;
    const F32 inverse = F32::all(top > 0.0f && spoilt == 0.0f ? 127.0f / top : 0.0f);
    int8_t* codes = to.codes + row * to.stride;
    for (int64_t i = 0; i < n; i += F32::width) store_codes(codes + i, value(i, n - i) * inverse);
    for (int64_t i = (n + F32::width - 1) / F32::width * F32::width; i < to.stride; ++i) codes[i] = 0;
}
