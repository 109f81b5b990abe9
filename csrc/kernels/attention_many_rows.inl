// Included inside the namespace of an instruction set. Attention of many rows, as in prefill: keys and values of a tile are copied once
// into units, then multiplied with all rows. A register holds one number of as many rows, so largest scores and sums of weights are
// taken without looking across registers.

template <class M, int registers>  // of rows
class ManyRows {
public:
    using Kv = typename M::Stored;
    static constexpr int64_t lanes = registers * F32::width;
    static constexpr int64_t block = F32::width == 16 ? 8 : 4;  // keys, or numbers of the head, that are multiplied at once
    static constexpr int64_t step = F32::width * M::pack;

    template <class T, class Source>
    static void attend(const QueryRows<T>& rows, const Source& source, Range keys, const Scoring& scoring, int64_t head_dim,
                       const Scratch& s, const Partial& to) {
        const int64_t units = (head_dim + M::pack - 1) / M::pack;
        take_queries(rows, head_dim, s);
        std::memset(s.mixed, 0, static_cast<size_t>(s.width * lanes) * sizeof(float));
        F32 largest[registers], sum[registers];
        for (int v = 0; v < registers; ++v) {
            largest[v] = F32::all(lowest_score);
            sum[v] = F32::zero();
        }
        const Visible seen(rows);
        Tile<Kv> tile;
        for (int64_t begin = keys.begin; begin < keys.end; begin += tile_keys) {
            source.fill(tile, begin, begin + tile_keys < keys.end ? begin + tile_keys : keys.end);
            take_keys(tile, head_dim, s);
            take_values(tile, source.to_value, head_dim, s);
            F32 top[registers], rescale[registers];
            multiply_keys(tile, units, s, top);
            const bool plain = sizeof(Kv) != 1 && scoring.only_scaled() && !rows.biased && rows.all_see(tile.begin, tile.begin + tile.count);
            const F32 scale = F32::all(plain ? scoring.factor() : 1.0f);
            for (int v = 0; v < registers; ++v) {
                const F32 found = plain ? top[v] * scale : score(rows, v, tile, seen, scoring, s);
                const F32 larger = max(largest[v], found);
                rescale[v] = power_of_two<M::exact>(largest[v] - larger);
                largest[v] = larger;
                sum[v] = fma(sum[v], rescale[v], weigh(v, tile, scale, larger, s));
            }
            mix(tile, head_dim, s, rescale);
        }
        for (int v = 0; v < registers; ++v) {
            store(to.largest + v * F32::width, largest[v]);
            store(to.sum + v * F32::width, sum[v]);
        }
        turn(head_dim, s, to);
    }

private:
    // The keys that each row sees, as numbers that are exact in float32 up to contexts of 16 million.
    struct Visible {
        float from[lanes], to[lanes];
        template <class T>
        explicit Visible(const QueryRows<T>& rows) {
            for (int64_t r = 0; r < lanes; ++r) {
                from[r] = static_cast<float>(rows.from[r < rows.count ? r : 0]);
                to[r] = static_cast<float>(rows.to[r < rows.count ? r : 0]);
            }
        }
    };

    template <class T>
    static void take_queries(const QueryRows<T>& rows, int64_t head_dim, const Scratch& s) {
        for (int v = 0; v < registers; ++v)
            for (int64_t i = 0; i < head_dim; i += step) {
                F32 square[F32::width];
                for (int64_t j = 0; j < F32::width; ++j) {
                    const int64_t r = v * F32::width + j;
                    square[j] = r < rows.count ? M::row(rows.query[r] + i, head_dim - i) : F32::zero();
                }
                transpose(square);
                for (int64_t j = 0; j < F32::width; ++j) store(s.query + (i / M::pack + j) * lanes + v * F32::width, square[j]);
            }
    }

    static void take_keys(const Tile<Kv>& tile, int64_t head_dim, const Scratch& s) {
        const int64_t end = rounded_up(tile.count, block);
        for (int64_t k = 0; k < end; ++k) {
            float* units = s.keys + k * s.width;
            const Kv* key = tile.keys[k < tile.count ? k : tile.count - 1];
            int64_t i = 0;
            for (; i + step <= head_dim; i += step) store(units + i / M::pack, M::row(key + i));
            if (i < head_dim) store(units + i / M::pack, M::row(key + i, head_dim - i));
        }
    }

    static void take_values(const Tile<Kv>& tile, int64_t to_value, int64_t head_dim, const Scratch& s) {
        for (int64_t k = 0; k < tile.count; k += M::pack) {
            float* column = s.values + k / M::pack * s.width;
            const Kv* even = tile.keys[k] + to_value;
            const Kv* odd = tile.keys[k + M::pack - 1 < tile.count ? k + M::pack - 1 : k] + to_value;
            F32 units[M::pack];
            int64_t i = 0;
            for (; i + step <= head_dim; i += step) {
                M::column_units(M::row(even + i), M::row(odd + i), units);
                for (int p = 0; p < M::pack; ++p) store(column + i + p * F32::width, units[p]);
            }
            if (i < head_dim) {
                M::column_units(M::row(even + i, head_dim - i), M::row(odd + i, head_dim - i), units);
                for (int p = 0; p < M::pack && i + p * F32::width < head_dim; ++p) store(column + i + p * F32::width, units[p]);
            }
        }
    }

    // sum[b][v] += over the steps: unit b of `right` times the units of all rows of `left`.
    static inline void multiply(const float* left, const float* right, int64_t right_block, int64_t right_step, int64_t steps,
                                F32 (&sum)[block][registers]) {
        for (int64_t i = 0; i < steps; ++i, left += lanes, right += right_step) {
            F32 of_rows[registers];
            for (int v = 0; v < registers; ++v) of_rows[v] = load(left + v * F32::width);
            for (int b = 0; b < block; ++b) {
                const F32 unit = F32::all(right[b * right_block]);
                for (int v = 0; v < registers; ++v) sum[b][v] = M::dot(sum[b][v], of_rows[v], unit);
            }
        }
    }

    // scores[k][r] = query r . key k, and the largest of each row.
    static void multiply_keys(const Tile<Kv>& tile, int64_t units, const Scratch& s, F32 (&top)[registers]) {
        for (int v = 0; v < registers; ++v) top[v] = F32::all(lowest_score);
        for (int64_t k = 0; k < tile.count; k += block) {
            F32 sum[block][registers];
            for (int b = 0; b < block; ++b)
                for (int v = 0; v < registers; ++v) sum[b][v] = F32::zero();
            multiply(s.query, s.keys + k * s.width, s.width, 1, units, sum);
            for (int b = 0; b < block; ++b)  // what fills up the last block are copies of the last key
                for (int v = 0; v < registers; ++v) {
                    store(s.scores + (k + b) * lanes + v * F32::width, sum[b][v]);
                    top[v] = max(top[v], sum[b][v]);
                }
        }
    }

    // Products of one register of rows -> scores, with all that a model may do to them; returns the largest.
    template <class T>
    static F32 score(const QueryRows<T>& rows, int v, const Tile<Kv>& tile, const Visible& seen, const Scoring& scoring, const Scratch& s) {
        float* scores = s.scores + v * F32::width;
        const bool all = rows.all_see(tile.begin, tile.begin + tile.count);
        const F32 from = load(seen.from + v * F32::width), to = load(seen.to + v * F32::width);
        F32 top = F32::all(lowest_score);
        for (int64_t k = 0; k < tile.count; ++k) {
            F32 x = load(scores + k * lanes);
            if constexpr (sizeof(Kv) == 1) x = x * F32::all(tile.key_scales[k]);
            x = scoring(x);
            if (rows.biased) x = fma(bias_of(rows, v, tile.begin + k), F32::all(Scoring::log2e), x);
            if (!all) {
                const F32 place = F32::all(static_cast<float>(tile.begin + k));
                x = select(less(place, to), select(less(place, from), F32::all(hidden_score), x), F32::all(hidden_score));
            }
            store(scores + k * lanes, x);
            top = max(top, x);
        }
        return top;
    }

    // Scores (times `scale`) of one register of rows -> weights beside `largest`; returns their sum.
    static F32 weigh(int v, const Tile<Kv>& tile, F32 scale, F32 largest, const Scratch& s) {
        const float* scores = s.scores + v * F32::width;
        float* weights = s.weights + v * F32::width;
        const F32 less_largest = F32::zero() - largest;
        F32 total = F32::zero();
        for (int64_t k = 0; k < tile.count; k += M::pack) {
            const bool both = M::pack == 2 && k + 1 < tile.count;
            F32 even = power_of_two<M::exact>(fma(load(scores + k * lanes), scale, less_largest)), odd = F32::zero();
            if (both) odd = power_of_two<M::exact>(fma(load(scores + (k + 1) * lanes), scale, less_largest));
            total = total + (even + odd);
            if constexpr (sizeof(Kv) == 1) {
                even = even * F32::all(tile.value_scales[k]);
                if (both) odd = odd * F32::all(tile.value_scales[k + 1]);
            }
            store(weights + k / M::pack * lanes, M::weights(even, odd));
        }
        return total;
    }

    template <class T>
    static F32 bias_of(const QueryRows<T>& rows, int v, int64_t position) {
        float found[F32::width];
        for (int64_t i = 0; i < F32::width; ++i) {
            const int64_t r = v * F32::width + i;
            // Beyond its last key a row may have no bias; the score of that key is hidden.
            found[i] = r < rows.count && position < rows.to[r] ? rows.bias[r][position] : 0.0f;
        }
        return load(found);
    }

    // mixed[i][r] = mixed[i][r] * rescale[r] + sum over k of number i of value k * weights[k][r]
    static void mix(const Tile<Kv>& tile, int64_t head_dim, const Scratch& s, const F32 (&rescale)[registers]) {
        for (int64_t i = 0; i < head_dim; i += block) {
            F32 sum[block][registers];
            float* mixed = s.mixed + i * lanes;
            for (int b = 0; b < block; ++b)
                for (int v = 0; v < registers; ++v) sum[b][v] = load(mixed + b * lanes + v * F32::width) * rescale[v];
            multiply(s.weights, s.values + i, 1, s.width, (tile.count + M::pack - 1) / M::pack, sum);
            for (int b = 0; b < block; ++b)
                for (int v = 0; v < registers; ++v) store(mixed + b * lanes + v * F32::width, sum[b][v]);
        }
    }

    // [number of the head][row] -> [row][number of the head]
    static void turn(int64_t head_dim, const Scratch& s, const Partial& to) {
        for (int64_t i = 0; i < head_dim; i += F32::width)
            for (int v = 0; v < registers; ++v) {
                F32 square[F32::width];
                for (int64_t j = 0; j < F32::width; ++j) square[j] = load(s.mixed + (i + j) * lanes + v * F32::width);
                transpose(square);
                for (int64_t j = 0; j < F32::width; ++j) store(to.mixed + (v * F32::width + j) * s.width + i, square[j]);
            }
    }
};

// Rows and keys of one piece of work -> unnormalised results.
template <class T, class Source, class Kv>
void attend_piece(const QueryRows<T>& rows, const Source& source, Range keys, const Scoring& scoring, int64_t head_dim, const Scratch& s,
                  const Partial& to) {
    using M = typename MathOf<T, Kv>::Type;
    if (rows.count <= few_rows) FewRows<M>::attend(rows, source, keys, scoring, head_dim, s, to);
    else if (rows.count <= F32::width) ManyRows<M, 1>::attend(rows, source, keys, scoring, head_dim, s, to);
    else if (rows.count <= 2 * F32::width) ManyRows<M, 2>::attend(rows, source, keys, scoring, head_dim, s, to);
    else ManyRows<M, 3>::attend(rows, source, keys, scoring, head_dim, s, to);
}
