// Included inside the namespace of an instruction set.

template <class T>
void gather_of(const Gather& a, Team& team) {
    const auto [begin, end] = team.share(a.rows);
    const F32 scale = F32::all(a.scale);
    for (int64_t row = begin; row < end; ++row) {
        T* out = static_cast<T*>(a.out) + row * a.width;
        const int64_t place = a.index[row];
        if (place < 0 || place >= a.table_rows) {
            *a.wrong = place;
            for (int64_t i = 0; i < a.width; i += F32::width) store(out + i, F32::all(__builtin_nanf("")), a.width - i);
            continue;
        }
        const T* from = static_cast<const T*>(a.table) + place * a.table_stride;
        if (a.added == nullptr && a.scale == 1.0f) {
            std::memcpy(out, from, a.width * sizeof(T));
            continue;
        }
        const T* added = a.added ? static_cast<const T*>(a.added) + row * a.width : nullptr;
        for (int64_t i = 0; i < a.width; i += F32::width) {
            const int64_t left = a.width - i;
            const F32 v = load(from + i, left);
            store(out + i, added ? fma(v, scale, load(added + i, left)) : v * scale, left);
        }
    }
}

inline void gather(const Gather& a, Team& team) {
    if (a.dtype == Dtype::float32) gather_of<float>(a, team);
    else gather_of<bf16>(a, team);
}

template <class T>
void add_scaled_of(const AddScaled& a, Team& team) {
    const auto [begin, end] = team.share(a.rows * a.width, 256);
    T* out = static_cast<T*>(a.out);
    const T* residual = static_cast<const T*>(a.residual);
    const T* x = static_cast<const T*>(a.x);
    const F32 scale = F32::all(a.scale);
    for (int64_t i = begin; i < end; i += F32::width) {
        const int64_t left = end - i;
        store(out + i, fma(load(x + i, left), scale, load(residual + i, left)), left);
    }
}

inline void add_scaled(const AddScaled& a, Team& team) {
    if (a.dtype == Dtype::float32) add_scaled_of<float>(a, team);
    else add_scaled_of<bf16>(a, team);
}

template <class T>
void finish_logits_of(const FinishLogits& a, Team& team) {
    constexpr int64_t piece = 1024;
    const int64_t pieces = (a.width + piece - 1) / piece;
    const auto [begin, end] = team.share(a.rows * pieces);
    const F32 divisor = F32::all(a.divisor), cap = F32::all(a.softcap);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t row = unit / pieces, start = unit % pieces * piece;
        const T* x = static_cast<const T*>(a.x) + row * a.x_stride + start;
        float* out = a.out + row * a.out_stride + start;
        const int64_t n = a.width - start < piece ? a.width - start : piece;
        for (int64_t i = 0; i < n; i += F32::width) {
            F32 v = load(x + i, n - i);
            if (a.divisor != 1.0f) v = v / divisor;
            if (a.softcap > 0.0f) v = cap * tanh(v / cap);
            store(out + i, v, n - i);
        }
    }
}

inline void finish_logits(const FinishLogits& a, Team& team) {
    if (a.dtype == Dtype::float32) finish_logits_of<float>(a, team);
    else finish_logits_of<bf16>(a, team);
}
