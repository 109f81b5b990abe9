// Included inside the namespace of an instruction set: float32 sums of a tile become results.

inline F32 activated_by(Activation activation, F32 x) {
    switch (activation) {
        case Activation::silu: return activated<Activation::silu>(x);
        case Activation::gelu: return activated<Activation::gelu>(x);
        case Activation::gelu_tanh: return activated<Activation::gelu_tanh>(x);
        default: return activated<Activation::relu>(x);
    }
}

template <class T>
inline void finish_rows(const LinearOutput& to, int64_t row, int64_t rows, int64_t channel, const float* sums) {
    for (int64_t r = 0; r < rows; ++r) {
        T* out = static_cast<T*>(to.out) + (row + r) * to.out_stride;
        const T* residual = static_cast<const T*>(to.residual) + (row + r) * to.residual_stride;
        for (int64_t v = 0; v < panel_width; v += F32::width) {
            const int64_t place = channel + v, left = to.width - place;
            if (left <= 0) break;
            F32 sum = load(sums + r * panel_width + v);
            if (to.bias != nullptr) sum = sum + load(to.bias + place, left);
            if (to.activates) sum = activated_by(to.activation, sum);
            if (to.residual != nullptr) sum = sum + load(residual + place, left);
            store(out + place, sum, left);
        }
    }
}

// sums [rows][panel_width] of channels `channel` ... of rows `row` ...
inline void finish(const LinearOutput& to, int64_t row, int64_t rows, int64_t channel, const float* sums) {
    if (to.dtype == Dtype::float32) finish_rows<float>(to, row, rows, channel, sums);
    else finish_rows<bf16>(to, row, rows, channel, sums);
}
