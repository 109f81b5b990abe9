// Included inside the namespace of an instruction set.
#include "attention_math.inl"
#include "attention_tiles.inl"
#include "attention_few_rows.inl"
#include "attention_many_rows.inl"
#include "attention_shares.inl"

// Sequences in blocks, each query seeing what came before it.
template <class T, class Kv>
struct PagedProblem {
    const Attend& a;
    int64_t group, heads, head_dim;
    float* memory;
    Scoring scoring;

    explicit PagedProblem(const Attend& a)
        : a(a), group(a.heads / a.kv.kv_heads), heads(a.kv.kv_heads), head_dim(a.kv.head_dim), memory(static_cast<float*>(a.workspace)),
          scoring{a.scale, a.softcap} {}

    int64_t count() const { return a.sequences; }

    Sequence sequence(int64_t i, int64_t token) const { return {i, token, a.context_lens[i] - a.query_lens[i], a.query_lens[i]}; }

    Range visible(const Sequence&, int64_t position) const {
        const int64_t begin = a.window == 0 || a.window > position ? 0 : position - a.window + 1;
        return {begin, position + 1};
    }

    QueryRows<T> rows_of(const Piece& piece) const {
        QueryRows<T> rows;
        rows.count = piece.rows;
        rows.biased = a.bias != nullptr;
        int64_t query = piece.row / group, in_group = piece.row % group;
        for (int64_t r = 0; r < piece.rows; ++r) {
            const int64_t head = piece.head * group + in_group, token = piece.sequence.token + query;
            const Range keys = visible(piece.sequence, piece.sequence.first + query);
            rows.query[r] = static_cast<const T*>(a.query) + token * a.query_stride + head * head_dim;
            rows.out[r] = static_cast<T*>(a.out) + (token * a.heads + head) * head_dim;
            rows.from[r] = static_cast<int32_t>(keys.begin);
            rows.to[r] = static_cast<int32_t>(keys.end);
            rows.bias[r] = a.bias == nullptr ? nullptr : a.bias + head * a.bias_stride;
            if (++in_group == group) {
                in_group = 0;
                ++query;
            }
        }
        return rows;
    }

    void attend(const Piece& piece, Range keys, const Scratch& scratch, const Partial& to) const {
        const int64_t slots = a.kv.head_stride / head_dim, first = piece.head * slots;
        const Kv* of_head = static_cast<const Kv*>(a.kv.keys) + piece.head * a.kv.head_stride;
        const int64_t to_value = static_cast<const Kv*>(a.kv.values) - static_cast<const Kv*>(a.kv.keys);
        const bool scaled = sizeof(Kv) == 1;
        const PagedKeys<Kv> source{of_head, to_value, head_dim, a.kv.block_size, a.block_tables + piece.sequence.index * a.table_stride,
                                   scaled ? a.kv.key_scales + first : nullptr, scaled ? a.kv.value_scales + first : nullptr};
        attend_piece<T, PagedKeys<Kv>, Kv>(rows_of(piece), source, keys, scoring, head_dim, scratch, to);
    }

    void write(const Piece& piece, const Partial& from) const {
        write_out(rows_of(piece), from, head_dim, rounded_up(head_dim, F32::width));
    }
};

// Rows of a packed batch, each token seeing its row.
template <class T>
struct PackedProblem {
    const AttendRows& a;
    int64_t group = 1, heads, head_dim;
    float* memory;
    Scoring scoring;

    explicit PackedProblem(const AttendRows& a)
        : a(a), heads(a.heads), head_dim(a.head_dim), memory(static_cast<float*>(a.workspace)), scoring{a.scale, 0.0f} {}

    int64_t count() const { return a.rows; }

    Sequence sequence(int64_t i, int64_t) const { return {i, a.starts[i], 0, a.starts[i + 1] - a.starts[i]}; }

    Range visible(const Sequence& row, int64_t position) const {
        if (a.reach < 0) return {0, row.count};
        const int64_t begin = position - a.reach, end = position + a.reach + 1;
        return {begin > 0 ? begin : 0, end < row.count ? end : row.count};
    }

    QueryRows<T> rows_of(const Piece& piece) const {
        QueryRows<T> rows;
        rows.count = piece.rows;
        rows.biased = a.bias != nullptr;
        for (int64_t r = 0; r < piece.rows; ++r) {
            const int64_t place = piece.row + r, token = piece.sequence.token + place;
            const Range keys = visible(piece.sequence, place);
            rows.query[r] = static_cast<const T*>(a.qkv) + token * a.qkv_stride + piece.head * head_dim;
            rows.out[r] = static_cast<T*>(a.out) + (token * heads + piece.head) * head_dim;
            rows.from[r] = static_cast<int32_t>(keys.begin);
            rows.to[r] = static_cast<int32_t>(keys.end);
            rows.bias[r] = a.bias == nullptr ? nullptr : a.bias + piece.head * a.bias_head_stride + place * a.bias_row_stride;
        }
        return rows;
    }

    void attend(const Piece& piece, Range keys, const Scratch& scratch, const Partial& to) const {
        const T* of_head = static_cast<const T*>(a.qkv) + piece.sequence.token * a.qkv_stride + (heads + piece.head) * head_dim;
        const RowKeys<T> source{of_head, heads * head_dim, head_dim, a.qkv_stride};
        attend_piece<T, RowKeys<T>, T>(rows_of(piece), source, keys, scoring, head_dim, scratch, to);
    }

    void write(const Piece& piece, const Partial& from) const {
        write_out(rows_of(piece), from, head_dim, rounded_up(head_dim, F32::width));
    }
};

inline void attend(const Attend& a, Team& team) {
    const bool quantized = a.kv.dtype == KvDtype::int8;
    if (a.dtype == Dtype::float32 && quantized) attend_together(PagedProblem<float, int8_t>(a), team);
    else if (a.dtype == Dtype::float32) attend_together(PagedProblem<float, float>(a), team);
    else if (quantized) attend_together(PagedProblem<bf16, int8_t>(a), team);
    else attend_together(PagedProblem<bf16, bf16>(a), team);
}

inline void attend_rows(const AttendRows& a, Team& team) {
    if (a.dtype == Dtype::float32) attend_together(PackedProblem<float>(a), team);
    else attend_together(PackedProblem<bf16>(a), team);
}
