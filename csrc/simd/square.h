// As many registers of float32 as a register holds numbers: turned, and summed. Included inside the namespace of an instruction set,
// after f32.h.

#if defined(__AVX512F__)

// In each 128 bits: the four sums of the numbers that a, b, c, d have there.
inline F32 four_sums(F32 a, F32 b, F32 c, F32 d) {
    const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a.v, b.v), _mm512_unpackhi_ps(a.v, b.v));
    const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c.v, d.v), _mm512_unpackhi_ps(c.v, d.v));
    const __m512d low = _mm512_unpacklo_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    const __m512d high = _mm512_unpackhi_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    return {_mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high))};
}

inline __m512 even_and_odd_lanes(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

// Of what four_sums made: number 4 i + j is the sum of the numbers of argument j of fours[i].
inline F32 joined_sums(const F32 (&fours)[4]) {
    return {even_and_odd_lanes(even_and_odd_lanes(fours[0].v, fours[1].v), even_and_odd_lanes(fours[2].v, fours[3].v))};
}

// Number i of x[j] becomes number j of x[i].
inline void transpose(F32 (&x)[16]) {
    __m512 t[16];
    for (int i = 0; i < 16; i += 4) {
        const __m512d ab_low = _mm512_castps_pd(_mm512_unpacklo_ps(x[i].v, x[i + 1].v));
        const __m512d ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(x[i].v, x[i + 1].v));
        const __m512d cd_low = _mm512_castps_pd(_mm512_unpacklo_ps(x[i + 2].v, x[i + 3].v));
        const __m512d cd_high = _mm512_castps_pd(_mm512_unpackhi_ps(x[i + 2].v, x[i + 3].v));
        t[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_low, cd_low));
        t[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_low, cd_low));
        t[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high));
        t[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high));
    }
    // t[4 g + k] holds columns k, 4 + k, 8 + k, 12 + k of rows 4 g .. 4 g + 3, one in each 128 bits.
    for (int k = 0; k < 4; ++k) {
        const __m512 upper_even = _mm512_shuffle_f32x4(t[k], t[4 + k], 0x88), upper_odd = _mm512_shuffle_f32x4(t[k], t[4 + k], 0xdd);
        const __m512 lower_even = _mm512_shuffle_f32x4(t[8 + k], t[12 + k], 0x88), lower_odd = _mm512_shuffle_f32x4(t[8 + k], t[12 + k], 0xdd);
        x[k].v = _mm512_shuffle_f32x4(upper_even, lower_even, 0x88);
        x[8 + k].v = _mm512_shuffle_f32x4(upper_even, lower_even, 0xdd);
        x[4 + k].v = _mm512_shuffle_f32x4(upper_odd, lower_odd, 0x88);
        x[12 + k].v = _mm512_shuffle_f32x4(upper_odd, lower_odd, 0xdd);
    }
}

#else

inline F32 four_sums(F32 a, F32 b, F32 c, F32 d) {
    return {_mm256_hadd_ps(_mm256_hadd_ps(a.v, b.v), _mm256_hadd_ps(c.v, d.v))};
}

// Of what four_sums made: number 4 i + j is the sum of the numbers of argument j of fours[i].
inline F32 joined_sums(const F32 (&fours)[2]) {
    return {_mm256_add_ps(_mm256_permute2f128_ps(fours[0].v, fours[1].v, 0x20), _mm256_permute2f128_ps(fours[0].v, fours[1].v, 0x31))};
}

// Number i of x[j] becomes number j of x[i].
inline void transpose(F32 (&x)[8]) {
    __m256 t[8];
    for (int i = 0; i < 8; i += 4) {
        const __m256 ab_low = _mm256_unpacklo_ps(x[i].v, x[i + 1].v), ab_high = _mm256_unpackhi_ps(x[i].v, x[i + 1].v);
        const __m256 cd_low = _mm256_unpacklo_ps(x[i + 2].v, x[i + 3].v), cd_high = _mm256_unpackhi_ps(x[i + 2].v, x[i + 3].v);
        t[i] = _mm256_shuffle_ps(ab_low, cd_low, 0x44);
        t[i + 1] = _mm256_shuffle_ps(ab_low, cd_low, 0xee);
        t[i + 2] = _mm256_shuffle_ps(ab_high, cd_high, 0x44);
        t[i + 3] = _mm256_shuffle_ps(ab_high, cd_high, 0xee);
    }
    for (int k = 0; k < 4; ++k) {
        x[k].v = _mm256_permute2f128_ps(t[k], t[4 + k], 0x20);
        x[4 + k].v = _mm256_permute2f128_ps(t[k], t[4 + k], 0x31);
    }
}

#endif
