// Included inside the namespace of an instruction set.

template <class T>
inline void copy_numbers(T* to, const T* from, int64_t count) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
}

// Codes and scale of one head: the largest number becomes +-127. A head that is not finite gets a scale that is NaN, so that it stays
// visible in whatever is computed from it.
template <class T>
inline void put_codes(int8_t* codes, float* scale, const T* from, int64_t count) {
    F32 top = F32::zero(), nothing = F32::zero();
    for (int64_t i = 0; i < count; i += F32::width) {
        const F32 x = load(from + i, count - i);
        top = max(abs(x), top);
        nothing = fma(x, F32::zero(), nothing);
    }
    const float largest = reduce_max(top);
    *scale = largest / 127.0f + reduce_add(nothing);
    const F32 each = F32::all(largest > 0.0f ? 127.0f / largest : 0.0f);
    for (int64_t i = 0; i < count; i += F32::width) {
        const F32 code = nearest(load(from + i, count - i) * each);
        float whole[F32::width];
        store(whole, select(less(abs(code), F32::all(128.0f)), code, F32::zero()));
        for (int64_t j = 0; j < F32::width && i + j < count; ++j) codes[i + j] = static_cast<int8_t>(whole[j]);
    }
}

// What belongs to one token: head i of 2 * kv_heads, keys first.
template <class T>
inline void put_head(const PagedLayer& kv, int64_t i, int64_t slot, const T* from) {
    const bool is_value = i >= kv.kv_heads;
    const int64_t head = is_value ? i - kv.kv_heads : i;
    const int64_t place = head * kv.head_stride + slot * kv.head_dim;
    void* base = is_value ? kv.values : kv.keys;
    if (kv.dtype == KvDtype::int8) {
        float* scales = is_value ? kv.value_scales : kv.key_scales;
        put_codes(static_cast<int8_t*>(base) + place, scales + place / kv.head_dim, from, kv.head_dim);
    } else {
        copy_numbers(static_cast<T*>(base) + place, from, kv.head_dim);
    }
}

template <class T>
void kv_store_of(const KvStore& a, Team& team) {
    const int64_t parts = 2 * a.kv.kv_heads;
    const auto [begin, end] = team.share(a.tokens * parts);
    for (int64_t i = begin; i < end; ++i) {
        const int64_t token = i / parts, part = i % parts;
        put_head(a.kv, part, a.slots[token], static_cast<const T*>(a.rows) + token * a.row_stride + part * a.kv.head_dim);
    }
}

inline void kv_store(const KvStore& a, Team& team) {
    if (a.dtype == Dtype::float32) kv_store_of<float>(a, team);
    else kv_store_of<bf16>(a, team);
}

template <class T>
inline void turn_head(T* to, const T* from, const T* cos, const T* sin, int64_t half) {
    for (int64_t i = 0; i < half; i += F32::width) {
        const int64_t left = half - i;
        const F32 x = load(from + i, left), y = load(from + half + i, left);
        store(to + i, fma(x, load(cos + i, left), y * load(sin + i, left)), left);
        store(to + half + i, fma(y, load(cos + half + i, left), x * load(sin + half + i, left)), left);
    }
}

template <class T>
void rotate_and_store_of(const RotateAndStore& a, Team& team) {
    const int64_t parts = a.heads + 2 * a.kv.kv_heads, size = a.kv.head_dim;
    const auto [begin, end] = team.share(a.tokens * parts);
    for (int64_t i = begin; i < end; ++i) {
        const int64_t token = i / parts, part = i % parts;
        T* head = static_cast<T*>(a.rows) + token * a.row_stride + part * size;
        if (part < a.heads + a.kv.kv_heads)
            turn_head(head, head, static_cast<const T*>(a.cos) + token * a.table_stride, static_cast<const T*>(a.sin) + token * a.table_stride, a.half);
        if (part >= a.heads) put_head(a.kv, part - a.heads, a.slots[token], head);
    }
}

inline void rotate_and_store(const RotateAndStore& a, Team& team) {
    if (a.dtype == Dtype::float32) rotate_and_store_of<float>(a, team);
    else rotate_and_store_of<bf16>(a, team);
}
