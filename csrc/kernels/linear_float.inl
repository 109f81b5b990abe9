// Included inside the namespace of an instruction set.
//
// A format says how a step of k of a panel meets a step of k of x. `per_step` numbers of k make a step; X is what a row of x has in it.

inline int32_t four_bytes(const void* p) {
    int32_t bits;
    std::memcpy(&bits, p, sizeof bits);
    return bits;
}

#if defined(__AVX512BF16__)
// Pairs of bfloat16, multiplied and added to float32 by one instruction.
struct Bfloat16Weight {
    static constexpr int64_t per_step = 2;
    static constexpr Dtype number = Dtype::bfloat16;
    using Number = bf16;
    struct X {
        bf16 even, odd;
    };
    struct Part {
        __m512bh v;
        explicit Part(const int32_t* p) : v((__m512bh)_mm512_load_si512(p)) {}
    };
    struct Row {
        __m512bh v;
        explicit Row(const X* x) : v((__m512bh)_mm512_set1_epi32(four_bytes(x))) {}
    };
    static F32 add(F32 sum, Part w, Row x) { return {_mm512_dpbf16_ps(sum.v, w.v, x.v)}; }
};
#else
#if defined(__AVX512F__)
inline F32 low_halves(const int32_t* p) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_load_si512(p), 16))}; }
inline F32 high_halves(const int32_t* p) {
    return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_load_si512(p), _mm512_set1_epi32(int32_t(0xffff0000))))};
}
#else
inline __m256i eight(const int32_t* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
inline F32 low_halves(const int32_t* p) { return {_mm256_castsi256_ps(_mm256_slli_epi32(eight(p), 16))}; }
inline F32 high_halves(const int32_t* p) {
    return {_mm256_castsi256_ps(_mm256_and_si256(eight(p), _mm256_set1_epi32(int32_t(0xffff0000))))};
}
#endif
// Pairs of bfloat16, widened.
struct Bfloat16Weight {
    static constexpr int64_t per_step = 2;
    static constexpr Dtype number = Dtype::float32;
    using Number = float;
    struct X {
        float even, odd;
    };
    struct Part {
        F32 even, odd;
        explicit Part(const int32_t* p) : even(low_halves(p)), odd(high_halves(p)) {}
    };
    struct Row {
        F32 even, odd;
        explicit Row(const X* x) : even(F32::all(x->even)), odd(F32::all(x->odd)) {}
    };
    static F32 add(F32 sum, const Part& w, const Row& x) { return fma(w.odd, x.odd, fma(w.even, x.even, sum)); }
};
#endif

struct Float32Weight {
    static constexpr int64_t per_step = 1;
    static constexpr Dtype number = Dtype::float32;
    using Number = float;
    using X = float;
    struct Part {
        F32 v;
        explicit Part(const int32_t* p) : v(load(reinterpret_cast<const float*>(p))) {}
    };
    struct Row {
        F32 v;
        explicit Row(const X* x) : v(F32::all(*x)) {}
    };
    static F32 add(F32 sum, Part w, Row x) { return fma(w.v, x.v, sum); }
};

// sums [R][panel_width]: R rows of x times a panel.
template <class Format, int R>
void multiply_tile(float* sums, const int32_t* panel, const typename Format::X* x, int64_t steps, Ahead ahead) {
    constexpr int V = 2;  // registers side by side
    for (int64_t at = 0; at < panel_width; at += V * F32::width) {
        F32 c[R][V];
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v) c[r][v] = F32::zero();
        const int32_t* w = panel + at;
        const typename Format::X* row = x;
        for (int64_t s = 0; s < steps; s += 4, row += 4 * R)
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i, w += panel_width) {
                ahead.step();
                const typename Format::Part w0(w), w1(w + F32::width);
#pragma GCC unroll 16
                for (int r = 0; r < R; ++r) {
                    const typename Format::Row one(row + 4 * r + i);
                    c[r][0] = Format::add(c[r][0], w0, one);
                    c[r][1] = Format::add(c[r][1], w1, one);
                }
            }
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v) store(sums + r * panel_width + at + v * F32::width, c[r][v]);
    }
}

// As many rows as there are registers for their sums, two parts of the weight and one of x.
constexpr int64_t highest_float_tile = F32::width == 16 ? 12 : 4;

template <class Format>
void multiply_rows(int64_t rows, float* sums, const int32_t* panel, const typename Format::X* x, int64_t steps, Ahead ahead) {
    static constexpr void (*by_rows[])(float*, const int32_t*, const typename Format::X*, int64_t, Ahead) = {
        multiply_tile<Format, 1>, multiply_tile<Format, 2>, multiply_tile<Format, 3>, multiply_tile<Format, 4>,
#if defined(__AVX512F__)
        multiply_tile<Format, 5>, multiply_tile<Format, 6>, multiply_tile<Format, 7>, multiply_tile<Format, 8>,
        multiply_tile<Format, 9>, multiply_tile<Format, 10>, multiply_tile<Format, 11>, multiply_tile<Format, 12>,
#endif
    };
    by_rows[rows - 1](sums, panel, x, steps, ahead);
}

// Steps of k, filled up to whole blocks of four.
constexpr int64_t steps_of(int64_t inputs, int64_t per_step) { return (inputs + 4 * per_step - 1) / (4 * per_step) * 4; }

// Numbers of x in the order in which the products read them, as the format has them: tile after tile, [steps / 4][rows][4].
template <class Format, class T>
void lay_out(const FloatLinear& a, const RowTiles& tiles, int64_t all_steps, Range steps) {
    using X = typename Format::X;
    constexpr int64_t per_step = Format::per_step, at_once = F32::width / per_step;
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
        const int64_t first = tiles.begin(tile), height = tiles.height(tile);
        for (int64_t r = 0; r < height; ++r) {
            X* out = static_cast<X*>(a.scratch) + first * all_steps + 4 * r;
            const T* x = static_cast<const T*>(a.x) + (first + r) * a.x_stride;
            for (int64_t s = steps.begin; s < steps.end; s += at_once) {
                X some[at_once];
                store(reinterpret_cast<typename Format::Number*>(some), load(x + s * per_step, a.inputs - s * per_step));
                for (int64_t i = 0; i < at_once && s + i < steps.end; i += 4) std::memcpy(out + (s + i) * height, some + i, 4 * sizeof(X));
            }
        }
    }
}

template <class Format>
void float_linear_of(const FloatLinear& a, Team& team) {
    using X = typename Format::X;
    const int64_t steps = steps_of(a.inputs, Format::per_step);
    const int64_t panels = (a.to.width + panel_width - 1) / panel_width;
    const RowTiles tiles(a.rows, highest_float_tile);
    const X* all = static_cast<const X*>(a.scratch);
    const bool as_it_is = a.rows == 1 && a.inputs % (4 * Format::per_step) == 0 && a.x_dtype == Format::number;
    if (as_it_is) {
        all = static_cast<const X*>(a.x);
    } else {
        if (a.x_dtype == Dtype::float32) lay_out<Format, float>(a, tiles, steps, team.share(steps, 16));
        else lay_out<Format, bf16>(a, tiles, steps, team.share(steps, 16));
        team.barrier();
    }
    const auto [begin, end] = team.share(panels * tiles.count);
    alignas(64) float sums[highest_float_tile * panel_width];
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t panel = unit / tiles.count, tile = unit % tiles.count;
        const int64_t row = tiles.begin(tile), height = tiles.height(tile);
        const int32_t* weight = static_cast<const int32_t*>(a.weight) + panel * steps * panel_width;
        const Ahead ahead(weight, steps * panel_width * 4, steps, tile, tiles.count, sums);
        multiply_rows<Format>(height, sums, weight, all + row * steps, steps, ahead);
        finish(a.to, row, height, panel * panel_width, sums);
    }
}

inline void float_linear(const FloatLinear& a, Team& team) {
    if (a.weight_dtype == Dtype::float32) float_linear_of<Float32Weight>(a, team);
    else float_linear_of<Bfloat16Weight>(a, team);
}

// Panels of a format with `per_step` numbers of T in a step.
template <class T, int64_t per_step>
void float_pack_of(const FloatPack& a, Team& team) {
    const int64_t steps = steps_of(a.inputs, per_step);
    const auto [begin, end] = team.share((a.channels + panel_width - 1) / panel_width);
    for (int64_t panel = begin; panel < end; ++panel) {
        T* out = static_cast<T*>(a.panels) + (a.first / panel_width + panel) * steps * per_step * panel_width;
        const int64_t channels = a.channels - panel * panel_width;
        for (int64_t s = 0; s < steps; ++s)
            for (int64_t c = 0; c < panel_width; ++c)
                for (int64_t i = 0; i < per_step; ++i) {
                    const int64_t k = s * per_step + i;
                    const T* from = static_cast<const T*>(a.weight) + (panel * panel_width + c) * a.weight_stride + k;
                    *out++ = c < channels && k < a.inputs ? *from : T{};
                }
    }
}

inline void float_pack(const FloatPack& a, Team& team) {
    if (a.dtype == Dtype::float32) float_pack_of<float, 1>(a, team);
    else float_pack_of<bf16, 2>(a, team);
}
