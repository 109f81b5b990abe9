// Included inside the namespace of an instruction set.

template <Activation activation>
inline F32 activated(F32 x) {
    switch (activation) {
        case Activation::silu: return x / (F32::all(1.0f) + exp(F32::zero() - x));
        case Activation::gelu: return x * normal_probability(x);
        // (1 + tanh(u)) / 2 = sigmoid(2 u), and 2 sqrt(2 / pi) = 1.5957691.
        case Activation::gelu_tanh: return x / (F32::all(1.0f) + exp(x * fma(x * x, F32::all(-0.071354814f), F32::all(-1.5957691f))));
        default: return select(less(x, F32::zero()), F32::zero(), x);
    }
}

constexpr int64_t activate_piece = 256;  // numbers of a row that one member takes at a time: also a single row is shared

template <class T, Activation activation, bool gated>
void activate_rows(const Activate& a, Team& team) {
    const int64_t pieces = (a.width + activate_piece - 1) / activate_piece;
    const auto [begin, end] = team.share(a.rows * pieces);
    for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t row = piece / pieces, start = piece % pieces * activate_piece;
        const T* x = static_cast<const T*>(a.x) + row * a.x_stride + start;
        T* out = static_cast<T*>(a.out) + row * a.out_stride + start;
        const int64_t n = a.width - start < activate_piece ? a.width - start : activate_piece;
        for (int64_t i = 0; i < n; i += F32::width) {
            F32 v = activated<activation>(load(x + i, n - i));
            if (gated) v = v * load(x + a.width + i, n - i);
            store(out + i, v, n - i);
        }
    }
}

template <class T, Activation activation>
void activate_or_gate(const Activate& a, Team& team) {
    if (a.gated) activate_rows<T, activation, true>(a, team);
    else activate_rows<T, activation, false>(a, team);
}

template <class T>
void activate_as(const Activate& a, Team& team) {
    switch (a.activation) {
        case Activation::silu: return activate_or_gate<T, Activation::silu>(a, team);
        case Activation::gelu: return activate_or_gate<T, Activation::gelu>(a, team);
        case Activation::gelu_tanh: return activate_or_gate<T, Activation::gelu_tanh>(a, team);
        case Activation::relu: return activate_or_gate<T, Activation::relu>(a, team);
    }
}

inline void activate(const Activate& a, Team& team) {
    if (a.dtype == Dtype::float32) activate_as<float>(a, team);
    else activate_as<bf16>(a, team);
}
