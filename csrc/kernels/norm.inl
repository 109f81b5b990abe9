// Included inside the namespace of an instruction set.

// Sum of term(register) over a row, in four chains so that additions do not wait for each other.
template <class T, class Term>
inline float row_sum(const T* x, int64_t n, Term&& term) {
    F32 sums[4] = {F32::zero(), F32::zero(), F32::zero(), F32::zero()};
    int64_t i = 0;
    for (; i + 4 * F32::width <= n; i += 4 * F32::width)
        for (int k = 0; k < 4; ++k) sums[k] = term(sums[k], load(x + i + k * F32::width), F32::width);
    for (; i < n; i += F32::width) sums[0] = term(sums[0], load(x + i, n - i), n - i);
    return reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// The numbers of a register beyond `left` set to zero.
inline F32 only(F32 a, int64_t left) {
    if (left >= F32::width) return a;
    float copy[F32::width] = {};
    store(copy, a, left);
    return load(copy);
}

struct NormedRow {
    F32 mean, factor;
};

template <bool layer, class T>
inline NormedRow normed_row(const T* x, int64_t n, float epsilon) {
    const float count = static_cast<float>(n);
    if (!layer) {
        const float squares = row_sum(x, n, [](F32 sum, F32 v, int64_t) { return fma(v, v, sum); });
        return {F32::zero(), F32::all(1.0f / std::sqrt(squares / count + epsilon))};
    }
    const F32 mean = F32::all(row_sum(x, n, [](F32 sum, F32 v, int64_t) { return sum + v; }) / count);
    const float squares = row_sum(x, n, [mean](F32 sum, F32 v, int64_t left) {
        const F32 d = only(v - mean, left);
        return fma(d, d, sum);
    });
    return {mean, F32::all(1.0f / std::sqrt(squares / count + epsilon))};
}

template <bool layer, class T, class W>
void norm_rows(const Norm& a, Team& team) {
    const auto [begin, end] = team.share(a.rows * a.heads);
    const auto* bias = static_cast<const W*>(a.bias);
    const F32 scale = F32::all(a.scale);
    for (int64_t part = begin; part < end; ++part) {
        const int64_t row = part / a.heads, head = part % a.heads;
        const T* x = static_cast<const T*>(a.x) + row * a.x_stride + head * a.width;
        const W* weight = static_cast<const W*>(a.weight) + head * a.width;
        const int64_t place = row * a.out_stride + head * a.width;
        T* out = static_cast<T*>(a.out) + place;
        const T* residual = a.residual ? static_cast<const T*>(a.residual) + place : nullptr;
        const NormedRow normed = normed_row<layer>(x, a.width, a.epsilon);
        for (int64_t i = 0; i < a.width; i += F32::width) {
            const int64_t left = a.width - i;
            F32 v = load(x + i, left);
            v = (layer ? v - normed.mean : v) * normed.factor;
            if (!layer && sizeof(W) == sizeof(T)) v = rounded<T>(v);
            const F32 w = load(weight + i, left);
            v = bias ? fma(v, w, load(bias + i, left)) : v * w;
            if (residual) v = fma(v, scale, load(residual + i, left));
            store(out + i, v, left);
        }
    }
}

template <bool layer>
inline void norm_of(const Norm& a, Team& team) {
    if (a.dtype == Dtype::float32) norm_rows<layer, float, float>(a, team);
    else if (a.wide) norm_rows<layer, bf16, float>(a, team);
    else norm_rows<layer, bf16, bf16>(a, team);
}

inline void norm(const Norm& a, Team& team) {
    if (a.layer) norm_of<true>(a, team);
    else norm_of<false>(a, team);
}
