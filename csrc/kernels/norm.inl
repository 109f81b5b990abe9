// Included inside the namespace of an instruction set.

template <class T, class W>
void rms_norm_rows(const RmsNorm& a, Team& team) {
    const auto [begin, end] = team.share(a.rows);
    const W* weight = static_cast<const W*>(a.weight);
    for (int64_t row = begin; row < end; ++row) {
        const T* x = static_cast<const T*>(a.x) + row * a.x_stride;
        T* out = static_cast<T*>(a.out) + row * a.out_stride;
        F32 sum = F32::zero();
        for (int64_t i = 0; i < a.width; i += F32::width) {
            const F32 v = load(x + i, a.width - i);
            sum = fma(v, v, sum);
        }
        const F32 scale = F32::all(1.0f / std::sqrt(reduce_add(sum) / static_cast<float>(a.width) + a.epsilon));
        for (int64_t i = 0; i < a.width; i += F32::width) {
            const int64_t left = a.width - i;
            F32 v = load(x + i, left) * scale;
            if (sizeof(W) == sizeof(T)) v = rounded<T>(v);
            store(out + i, v * load(weight + i, left), left);
        }
    }
}

inline void rms_norm(const RmsNorm& a, Team& team) {
    if (a.dtype == Dtype::float32) rms_norm_rows<float, float>(a, team);
    else if (a.wide) rms_norm_rows<bf16, float>(a, team);
    else rms_norm_rows<bf16, bf16>(a, team);
}
