// Included inside the namespace of an instruction set.

// cos and sin of n angles in float64: the angle less the nearest multiple of pi/2 (in two parts, exact far beyond any position), then
// the Taylor polynomials, whose first term left out is below 1e-11 up to pi/4. Plain loops, which the compiler turns into vectors.
inline void cosines_and_sines(const float* angles, int64_t n, float* cosines, float* sines) {
    for (int64_t i = 0; i < n; ++i) {
        const double angle = angles[i];
        const double quarter = __builtin_nearbyint(angle * 0.63661977236758134);
        const double r = (angle - quarter * 1.5707963267341256) - quarter * 6.0771005065061922e-11;
        const double z = r * r;
        const double s = r + r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800)))));
        const double c = 1.0 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600))))));
        // quarter mod 4 decides which of the two it is, and the signs.
        const double turn = quarter - 4.0 * __builtin_floor(quarter * 0.25);
        const bool swapped = turn == 1.0 || turn == 3.0;
        const double cosine = swapped ? s : c, sine = swapped ? c : s;
        cosines[i] = static_cast<float>(turn == 1.0 || turn == 2.0 ? -cosine : cosine);
        sines[i] = static_cast<float>(turn >= 2.0 ? -sine : sine);
    }
}

template <class T>
void rotary_tables_of(const RotaryTables& a, Team& team) {
    constexpr int64_t piece = 64;
    const auto [begin, end] = team.share(a.rows);
    const F32 factor = F32::all(a.factor);
    for (int64_t row = begin; row < end; ++row) {
        const float position = static_cast<float>(a.positions[row]);
        T* cos = static_cast<T*>(a.cos) + row * 2 * a.half;
        T* sin = static_cast<T*>(a.sin) + row * 2 * a.half;
        for (int64_t start = 0; start < a.half; start += piece) {
            const int64_t n = a.half - start < piece ? a.half - start : piece;
            float angles[piece], cosines[piece], sines[piece];
            for (int64_t i = 0; i < n; ++i) angles[i] = position * a.frequencies[start + i];
            cosines_and_sines(angles, n, cosines, sines);
            for (int64_t i = 0; i < n; i += F32::width) {
                const F32 c = load(cosines + i, n - i) * factor, s = load(sines + i, n - i) * factor;
                store(cos + start + i, c, n - i);
                store(cos + a.half + start + i, c, n - i);
                store(sin + start + i, F32::zero() - s, n - i);
                store(sin + a.half + start + i, s, n - i);
            }
        }
    }
}

inline void rotary_tables(const RotaryTables& a, Team& team) {
    if (a.dtype == Dtype::float32) rotary_tables_of<float>(a, team);
    else rotary_tables_of<bf16>(a, team);
}

template <class T>
void rotate_of(const Rotate& a, Team& team) {
    const auto [begin, end] = team.share(a.rows * a.heads);
    for (int64_t part = begin; part < end; ++part) {
        const int64_t row = part / a.heads, head = part % a.heads;
        T* first = static_cast<T*>(a.x) + row * a.row_stride + head * a.head_stride;
        T* second = first + a.half;
        const T* cos = static_cast<const T*>(a.cos) + row * a.table_stride;
        const T* sin = static_cast<const T*>(a.sin) + row * a.table_stride;
        for (int64_t i = 0; i < a.half; i += F32::width) {
            const int64_t left = a.half - i;
            const F32 x = load(first + i, left), y = load(second + i, left);
            store(first + i, fma(x, load(cos + i, left), y * load(sin + i, left)), left);
            store(second + i, fma(y, load(cos + a.half + i, left), x * load(sin + a.half + i, left)), left);
        }
    }
}

inline void rotate(const Rotate& a, Team& team) {
    if (a.dtype == Dtype::float32) rotate_of<float>(a, team);
    else rotate_of<bf16>(a, team);
}
