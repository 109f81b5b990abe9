// Included inside the namespace of an instruction set. Attention of up to `few_rows` rows, as in decoding: keys and values are used where
// they lie, once, and memory is what takes the time. A register holds numbers of one row.

template <class M>
class FewRows {
public:
    using Kv = typename M::Stored;
    static constexpr int64_t step = F32::width * M::pack;  // numbers in a register of units

    template <class T, class Source>
    static void attend(const QueryRows<T>& rows, const Source& source, Range keys, const Scoring& scoring, int64_t head_dim,
                       const Scratch& s, const Partial& to) {
        const int64_t units = rounded_up(head_dim, step) / M::pack;
        for (int64_t r = 0; r < rows.count; ++r) {
            float* units_of_row = s.query + r * units;
            for (int64_t i = 0; i < head_dim; i += step) store(units_of_row + i / M::pack, M::row(rows.query[r] + i, head_dim - i));
            for (int64_t i = 0; i < s.width; i += F32::width) store(to.mixed + r * s.width + i, F32::zero());
            to.largest[r] = lowest_score;
            to.sum[r] = 0.0f;
        }
        Tile<Kv> tiles[2];
        source.fill(tiles[0], keys.begin, keys.begin + tile_keys < keys.end ? keys.begin + tile_keys : keys.end);
        for (int64_t begin = keys.begin, turn = 0; begin < keys.end; begin += tile_keys, turn ^= 1) {
            const Tile<Kv>& tile = tiles[turn];
            Tile<Kv>& next = tiles[turn ^ 1];
            const int64_t next_end = begin + 2 * tile_keys < keys.end ? begin + 2 * tile_keys : keys.end;
            if (begin + tile_keys < keys.end) source.fill(next, begin + tile_keys, next_end);
            else next.count = 0;
            float rescale[few_rows];
            score(rows.count, tile, next, head_dim, units, s);
            weigh(rows, tile, scoring, s, to, rescale);
            mix(rows.count, tile, next, source.to_value, head_dim, s, to, rescale);
        }
    }

private:
    // Keys, or values `offset` numbers after them. Spread over the work, so that memory is read all the time. Into the second cache: the first
    // waits for few lines at once (measured: 7.4 GB/s of one core, 14.4 this way).
    static void prefetch(const Tile<Kv>& next, int64_t begin, int64_t end, int64_t offset, int64_t head_dim) {
        if (end > next.count) end = next.count;
        for (int64_t k = begin; k < end; ++k) {
            const char* line = reinterpret_cast<const char*>(next.keys[k] + offset);
            for (int64_t b = 0; b < head_dim * static_cast<int64_t>(sizeof(Kv)); b += 64) _mm_prefetch(line + b, _MM_HINT_T1);
        }
    }

    // scores[r][k] = query r . key k
    static void score(int64_t count, const Tile<Kv>& tile, const Tile<Kv>& next, int64_t head_dim, int64_t units, const Scratch& s) {
        for (int64_t k = 0; k < tile.count; k += F32::width) {
            prefetch(next, k, k + F32::width, 0, head_dim);
            for (int64_t r = 0; r < count; r += 4) {
                if (count - r >= 4) score_rows<4>(r, k, tile, head_dim, units, s);
                else if (count - r == 3) score_rows<3>(r, k, tile, head_dim, units, s);
                else if (count - r == 2) score_rows<2>(r, k, tile, head_dim, units, s);
                else score_rows<1>(r, k, tile, head_dim, units, s);
            }
        }
    }

    // Of rows from `row` on and a register of keys from k on: four keys at once.
    template <int64_t count>
    static void score_rows(int64_t row, int64_t k, const Tile<Kv>& tile, int64_t head_dim, int64_t units, const Scratch& s) {
        const float* query = s.query + row * units;
        F32 fours[count][F32::width / 4];
        for (int64_t g = 0; g < F32::width / 4; ++g) {
            const Kv* const* keys = tile.keys + k + 4 * g;
            F32 x[count][4];
            for (int64_t r = 0; r < count; ++r)
                for (int64_t j = 0; j < 4; ++j) x[r][j] = F32::zero();
            int64_t i = 0;
            for (; i + step <= head_dim; i += step) {
                F32 key[4] = {M::row(keys[0] + i), M::row(keys[1] + i), M::row(keys[2] + i), M::row(keys[3] + i)};
                multiply_keys<count>(query + i / M::pack, units, key, x);
            }
            if (i < head_dim) {
                const int64_t left = head_dim - i;
                F32 key[4] = {M::row(keys[0] + i, left), M::row(keys[1] + i, left), M::row(keys[2] + i, left), M::row(keys[3] + i, left)};
                multiply_keys<count>(query + i / M::pack, units, key, x);
            }
            for (int64_t r = 0; r < count; ++r) fours[r][g] = four_sums(x[r][0], x[r][1], x[r][2], x[r][3]);
        }
        for (int64_t r = 0; r < count; ++r) {
            F32 found = joined_sums(fours[r]);
            if constexpr (sizeof(Kv) == 1) found = found * load(tile.key_scales + k);
            store(s.scores + (row + r) * tile_keys + k, found);
        }
    }

    template <int64_t count>
    static inline void multiply_keys(const float* query, int64_t units, F32 (&key)[4], F32 (&x)[count][4]) {
        for (int64_t j = 0; j < 4; ++j) in_register(key[j]);
        for (int64_t r = 0; r < count; ++r) {
            const F32 q = load(query + r * units);
            for (int64_t j = 0; j < 4; ++j) x[r][j] = M::dot(x[r][j], key[j], q);
        }
    }

    // Scores -> weights beside the largest score so far; rescale[r]: what weights of earlier tiles are worth now.
    template <class T>
    static void weigh(const QueryRows<T>& rows, const Tile<Kv>& tile, const Scoring& scoring, const Scratch& s, const Partial& to,
                      float* rescale) {
        const bool all = rows.all_see(tile.begin, tile.begin + rounded_up(tile.count, F32::width));
        for (int64_t r = 0; r < rows.count; ++r) {
            float* scores = s.scores + r * tile_keys;
            F32 top = F32::all(to.largest[r]);
            for (int64_t k = 0; k < tile.count; k += F32::width) {
                F32 x = scoring(load(scores + k));
                if (rows.biased) x = fma(load(rows.bias[r] + tile.begin + k, tile.count - k), F32::all(Scoring::log2e), x);
                if (!all) {
                    const int64_t end = tile.begin + tile.count;
                    const int64_t to_key = rows.to[r] < end ? rows.to[r] : end;
                    const F32 place = F32::all(static_cast<float>(k)) + counting();
                    const F32 low = F32::all(static_cast<float>(rows.from[r] - tile.begin));
                    const F32 high = F32::all(static_cast<float>(to_key - tile.begin));
                    x = select(less(place, high), select(less(place, low), F32::all(hidden_score), x), F32::all(hidden_score));
                }
                store(scores + k, x);
                top = max(top, x);
            }
            const float largest = reduce_max(top);
            F32 sum = F32::zero();
            for (int64_t k = 0; k < tile.count; k += F32::width) {
                const F32 weight = power_of_two<M::exact>(load(scores + k) - F32::all(largest));
                sum = sum + weight;
                put_weights(s.weights + r * tile_keys, k, sizeof(Kv) == 1 ? weight * load(tile.value_scales + k) : weight);
            }
            const F32 old = power_of_two<true>(F32::all(to.largest[r] - largest));
            float lanes[F32::width];
            store(lanes, old);
            rescale[r] = lanes[0];
            to.sum[r] = to.sum[r] * rescale[r] + reduce_add(sum);
            to.largest[r] = largest;
        }
    }

    static F32 counting() {
        alignas(64) static constexpr float places[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        return load(places);
    }

    static void put_weights(float* units, int64_t k, F32 weight) {
        if constexpr (M::pack == 1) store(units + k, weight);
        else store(reinterpret_cast<bf16*>(units) + k, weight);
    }

    // mixed[r] = mixed[r] * rescale[r] + sum over k of weights[r][k] * value k
    static void mix(int64_t count, const Tile<Kv>& tile, const Tile<Kv>& next, int64_t to_value, int64_t head_dim, const Scratch& s,
                    const Partial& to, const float* rescale) {
        constexpr int64_t wide = F32::width == 16 ? 4 : 2;  // registers of a row's results at once
        for (int64_t r = 0; r < count; r += 4) {
            const int64_t i = mix_columns<wide>(count - r, r, 0, tile, next, to_value, head_dim, s, to, rescale);
            if (i < head_dim) mix_columns<M::pack>(count - r, r, i, tile, next, to_value, head_dim, s, to, rescale);
        }
    }

    template <int64_t registers>
    static int64_t mix_columns(int64_t count, int64_t row, int64_t begin, const Tile<Kv>& tile, const Tile<Kv>& next, int64_t to_value,
                               int64_t head_dim, const Scratch& s, const Partial& to, const float* rescale) {
        if (count >= 4) return mix_rows<registers, 4>(row, begin, tile, next, to_value, head_dim, s, to, rescale);
        if (count == 3) return mix_rows<registers, 3>(row, begin, tile, next, to_value, head_dim, s, to, rescale);
        if (count == 2) return mix_rows<registers, 2>(row, begin, tile, next, to_value, head_dim, s, to, rescale);
        return mix_rows<registers, 1>(row, begin, tile, next, to_value, head_dim, s, to, rescale);
    }

    // Rows from `row` on, numbers of the head from `begin` on, as many as whole groups of `registers` hold (a single one: to the end).
    // Returns the first number that is left.
    template <int64_t registers, int64_t count>
    static int64_t mix_rows(int64_t row, int64_t begin, const Tile<Kv>& tile, const Tile<Kv>& next, int64_t to_value, int64_t head_dim,
                            const Scratch& s, const Partial& to, const float* rescale) {
        constexpr int64_t numbers = registers * F32::width;
        constexpr bool last = registers == M::pack;
        const float* weights = s.weights + row * tile_keys;
        int64_t i = begin;
        for (; last ? i < head_dim : i + numbers <= head_dim; i += numbers) {
            F32 x[count][registers];
            float* mixed = to.mixed + row * s.width + i;
            const bool all = !last || s.width - i >= numbers;
            for (int64_t r = 0; r < count; ++r)
                for (int64_t c = 0; c < registers; ++c) {
                    x[r][c] = F32::zero();
                    if (c == 0 || all) x[r][c] = load(mixed + r * s.width + c * F32::width) * F32::all(rescale[row + r]);
                }
            const int64_t fetched = row == 0 && i == 0 ? next.count : 0;
            for (int64_t k = 0; k < tile.count; k += M::pack) {
                if (k < fetched) prefetch(next, k, k + M::pack, to_value, head_dim);
                F32 values[registers];
                for (int64_t c = 0; c < registers; c += M::pack) {
                    const int64_t at = i + c * F32::width;
                    const Kv* even = tile.keys[k] + to_value + at;
                    const Kv* odd = tile.keys[k + M::pack - 1] + to_value + at;
                    F32 units[M::pack];
                    if constexpr (last) M::column_units(M::row(even, head_dim - at), M::row(odd, head_dim - at), units);
                    else M::column_units(M::row(even), M::row(odd), units);
                    for (int64_t p = 0; p < M::pack; ++p) values[c + p] = units[p];
                }
                for (int64_t r = 0; r < count; ++r) {
                    const F32 weight = F32::all(weights[r * tile_keys + k / M::pack]);
                    for (int64_t c = 0; c < registers; ++c) x[r][c] = M::dot(x[r][c], values[c], weight);
                }
            }
            for (int64_t r = 0; r < count; ++r)
                for (int64_t c = 0; c < registers; ++c)
                    if (c == 0 || all) store(mixed + r * s.width + c * F32::width, x[r][c]);
        }
        return i;
    }
};
