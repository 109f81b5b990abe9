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
        take_queries(rows, units, s);
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
            score(tile, units, s);
            F32 rescale[registers];
            const bool all = rows.all_see(tile.begin, tile.begin + tile.count);
            for (int v = 0; v < registers; ++v) weigh(rows, v, tile, all, seen, scoring, s, largest[v], sum[v], rescale[v]);
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
    static void take_queries(const QueryRows<T>& rows, int64_t units, const Scratch& s) {
        for (int64_t r = 0; r < lanes; ++r) {
            if (r < rows.count)
                for (int64_t u = 0; u < units; ++u) s.query[u * lanes + r] = M::unit(rows.query[r] + u * M::pack);
            else
                for (int64_t u = 0; u < units; ++u) s.query[u * lanes + r] = 0.0f;
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

    // scores[k][r] = query r . key k
    static void score(const Tile<Kv>& tile, int64_t units, const Scratch& s) {
        for (int64_t k = 0; k < tile.count; k += block) {
            F32 sum[block][registers];
            for (int b = 0; b < block; ++b)
                for (int v = 0; v < registers; ++v) sum[b][v] = F32::zero();
            multiply(s.query, s.keys + k * s.width, s.width, 1, units, sum);
            for (int b = 0; b < block; ++b)
                for (int v = 0; v < registers; ++v) store(s.scores + (k + b) * lanes + v * F32::width, sum[b][v]);
        }
    }

    // Scores of one register of rows -> weights beside the largest score so far, and what weights of earlier tiles are worth now.
    template <class T>
    static void weigh(const QueryRows<T>& rows, int v, const Tile<Kv>& tile, bool all, const Visible& seen, const Scoring& scoring,
                      const Scratch& s, F32& largest, F32& sum, F32& rescale) {
        float* scores = s.scores + v * F32::width;
        const F32 from = load(seen.from + v * F32::width), to = load(seen.to + v * F32::width);
        F32 top = largest;
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
        rescale = power_of_two<M::exact>(largest - top);
        largest = top;
        F32 total = F32::zero();
        float* weights = s.weights + v * F32::width;
        for (int64_t k = 0; k < tile.count; k += M::pack) {
            F32 weight[2] = {power_of_two<M::exact>(load(scores + k * lanes) - top), F32::zero()};
            total = total + weight[0];
            if (M::pack == 2 && k + 1 < tile.count) {
                weight[1] = power_of_two<M::exact>(load(scores + (k + 1) * lanes) - top);
                total = total + weight[1];
            }
            if constexpr (sizeof(Kv) == 1) {
                weight[0] = weight[0] * F32::all(tile.value_scales[k]);
                if (M::pack == 2 && k + 1 < tile.count) weight[1] = weight[1] * F32::all(tile.value_scales[k + 1]);
            }
            store(weights + k / M::pack * lanes, M::weights(weight[0], weight[1]));
        }
        sum = fma(sum, rescale, total);
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
