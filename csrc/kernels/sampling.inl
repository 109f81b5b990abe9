// Included inside the namespace of an instruction set, after candidates.inl.

constexpr int64_t sampling_block = 1024;  // numbers that are summed in float32 before the sum goes on in float64

template <class Each>
inline void over_blocks(int64_t n, Each&& each) {
    for (int64_t start = 0; start < n; start += sampling_block) each(start, n - start < sampling_block ? n - start : sampling_block);
}

struct Largest {
    float value;
    int64_t index;
};

inline F32 load_or(const float* p, int64_t left, F32 other) {
    if (left >= F32::width) return load(p);
    float copy[F32::width];
    store(copy, other);
    store(copy, load(p, left), left);
    return load(copy);
}

// The first place of the largest number; of the first NaN if there is one.
inline Largest largest(const float* x, int64_t n) {
    const F32 lowest = F32::all(-__builtin_inff());
    float best = -__builtin_inff();
    int64_t at = 0;
    bool found = false;
    over_blocks(n, [&](int64_t start, int64_t count) {
        F32 tops[4] = {lowest, lowest, lowest, lowest}, zeros = F32::zero();
        int64_t i = 0;
        for (; i + 4 * F32::width <= count; i += 4 * F32::width)
            for (int k = 0; k < 4; ++k) {
                const F32 v = load(x + start + i + k * F32::width);
                tops[k] = max(tops[k], v);
                zeros = zeros + (v - v);  // not zero after NaN or infinity
            }
        for (; i < count; i += F32::width) {
            const F32 v = load_or(x + start + i, count - i, lowest);
            tops[0] = max(tops[0], v);
            zeros = zeros + (v - v);
        }
        const float top = reduce_max(max(max(tops[0], tops[1]), max(tops[2], tops[3])));
        if (!(reduce_add(zeros) == 0.0f))
            for (int64_t j = 0; j < count && !found; ++j)
                if (x[start + j] != x[start + j]) best = x[start + j], at = start + j, found = true;
        if (!found && top > best) best = top, at = start;
    });
    while (!found && x[at] != best) ++at;
    return {best, at};
}

inline void argmax(const Argmax& a, Team& team) {
    const auto [begin, end] = team.share(a.rows);
    for (int64_t row = begin; row < end; ++row) {
        const Largest top = largest(a.logits + row * a.stride, a.width);
        a.values[row] = top.value;
        a.tokens[row] = top.index;
    }
}

// What a row is turned into before anything is decided: x / temperature, of which `top` is the largest.
struct Tempered {
    const float* x;
    int64_t n;
    float temperature, top;

    F32 at(int64_t i) const {
        const F32 v = load_or(x + i, n - i, F32::all(-__builtin_inff()));
        return temperature == 1.0f ? v : v / F32::all(temperature);
    }
    F32 weight(F32 v) const { return exp(v - F32::all(top)); }
};

// Sum of e^(v - top) over the numbers from `floor` on.
inline double mass(const Tempered& row, float floor) {
    double sum = 0;
    over_blocks(row.n, [&](int64_t start, int64_t count) {
        F32 part = F32::zero();
        for (int64_t i = start; i < start + count; i += F32::width) {
            const F32 v = row.at(i);
            part = part + select(at_least(v, F32::all(floor)), row.weight(v), F32::zero());
        }
        sum += reduce_add(part);
    });
    return sum;
}

constexpr int levels = 8;
constexpr float depths[levels] = {1, 2, 3.5f, 5, 7.5f, 10, 15, 20};  // below the top: how far to look for numbers that stay

// The first level at which the numbers weigh at least `share` of all of them; `total` becomes what all weigh.
inline int level_of(const Tempered& row, float floor, float share, double& total) {
    double sums[levels + 1] = {};
    over_blocks(row.n, [&](int64_t start, int64_t count) {
        F32 parts[levels + 1];
        for (F32& part : parts) part = F32::zero();
        for (int64_t i = start; i < start + count; i += F32::width) {
            const F32 v = row.at(i);
            const F32 weight = select(at_least(v, F32::all(floor)), row.weight(v), F32::zero());
            for (int k = 0; k < levels; ++k)
                parts[k] = parts[k] + select(at_least(v, F32::all(row.top - depths[k])), weight, F32::zero());
            parts[levels] = parts[levels] + weight;
        }
        for (int k = 0; k <= levels; ++k) sums[k] += reduce_add(parts[k]);
    });
    total = sums[levels];
    int level = 0;
    while (level < levels && sums[level] < share * total) ++level;
    return level;
}

// The numbers from `bound` on, in their order.
inline int64_t collect(const Tempered& row, float bound, Candidate* out) {
    int64_t found = 0;
    for (int64_t i = 0; i < row.n; i += F32::width) {
        const F32 v = row.at(i);
        const uint32_t any = bits(at_least(v, F32::all(bound)));
        if (!any) continue;
        float values[F32::width], weights[F32::width];
        store(values, v);
        store(weights, row.weight(v));
        each_from(v, F32::all(bound), i, row.n - i, [&](int64_t j) {
            out[found++] = {values[j - i], weights[j - i], static_cast<int32_t>(j)};
        });
    }
    return found;
}

struct Kept {
    int64_t collected;  // candidates in the order of the row, of which stay those up to `last` in the order of `precedes`
    Candidate last;
};

// The candidates from `floor` on that top_k and top_p leave. Looks at few numbers first, then at more until these are enough.
inline Kept keep_head(const Tempered& row, float floor, int64_t top_k, float top_p, Candidate* scratch) {
    const bool whole = top_k >= row.n;  // then probabilities are those of all numbers, else of the top_k
    double total = 0;
    Candidate* copy = scratch + row.n;
    for (int level = whole ? level_of(row, floor, top_p, total) : 3;; ++level) {
        const float bound = level < levels && row.top - depths[level] > floor ? row.top - depths[level] : floor;
        const int64_t found = collect(row, bound, scratch);
        const bool all = bound == floor;
        if (!all && !whole && found < top_k) continue;
        double share = 0;
        if (whole) {
            for (int64_t i = 0; i < found; ++i) share += scratch[i].weight;
            if (!all && share < top_p * total) continue;
        }
        std::memcpy(copy, scratch, found * sizeof(Candidate));
        int64_t stay = found;
        if (!whole && top_k < found) stay = fewest(copy, found, static_cast<double>(top_k), [](const Candidate&) { return 1.0; });
        if (top_p < 1.0f) {
            double of = total;
            if (!whole) {
                of = 0;
                for (int64_t i = 0; i < stay; ++i) of += copy[i].weight;
            }
            stay = fewest(copy, stay, top_p * of, [](const Candidate& c) { return static_cast<double>(c.weight); });
        }
        Candidate last = copy[0];
        for (int64_t i = 1; i < stay; ++i)
            if (precedes(last, copy[i])) last = copy[i];
        return {found, last};
    }
}

// The first number at which what was added up exceeds `number` of the sum, among all from `floor` on.
inline int64_t draw_from_all(const Tempered& row, float floor, double number, int64_t best) {
    const double target = number * mass(row, floor);
    double before = 0;
    int64_t token = -1;
    over_blocks(row.n, [&](int64_t start, int64_t count) {
        if (token >= 0) return;
        // As `mass` adds them, so that the blocks add up to the same sum.
        F32 part = F32::zero();
        for (int64_t i = start; i < start + count; i += F32::width) {
            const F32 v = row.at(i);
            part = part + select(at_least(v, F32::all(floor)), row.weight(v), F32::zero());
        }
        const double after = before + reduce_add(part);
        if (after <= target) {
            before = after;
            return;
        }
        int64_t last = -1;
        for (int64_t i = start; i < start + count && token < 0; i += F32::width) {
            const F32 v = row.at(i);
            float weights[F32::width];
            store(weights, select(at_least(v, F32::all(floor)), row.weight(v), F32::zero()));
            for (int64_t j = 0; j < F32::width && token < 0; ++j) {
                before += weights[j];
                if (weights[j] > 0) last = i + j;
                if (before > target) token = i + j;
            }
        }
        if (token < 0) token = last;  // the block's sum in float32 was larger than its numbers one by one
    });
    return token < 0 ? best : token;
}

inline int64_t draw_from_head(const Kept& kept, const Candidate* c, double number, int64_t best) {
    double total = 0, sum = 0;
    for (int64_t i = 0; i < kept.collected; ++i)
        if (!precedes(kept.last, c[i])) total += c[i].weight;
    for (int64_t i = 0; i < kept.collected; ++i) {
        if (precedes(kept.last, c[i])) continue;
        sum += c[i].weight;
        if (sum > number * total) return c[i].index;
    }
    return best;
}

// The row as it is after the temperature, and minus infinity for what did not stay.
inline void write_kept(const Tempered& row, float* out, float floor, const Kept* kept) {
    for (int64_t i = 0; i < row.n; i += F32::width) {
        float values[F32::width];
        store(values, row.at(i));
        for (int64_t j = 0; j < F32::width && i + j < row.n; ++j) {
            const bool stays = values[j] >= floor && !(kept && precedes(kept->last, {values[j], 0, static_cast<int32_t>(i + j)}));
            out[i + j] = stays ? values[j] : -__builtin_inff();
        }
    }
}

inline void draw(const Draw& a, Team& team) {
    Candidate* scratch = a.scratch + team.rank() * 2 * a.width;
    for (int64_t row = team.rank(); row < a.rows; row += team.size()) {
        const int64_t best = a.best[row];
        a.tokens[row] = best;
        float* x = a.logits + row * a.stride;
        const Tempered tempered{x, a.width, a.temperature[row], x[best] / a.temperature[row]};
        const float top = tempered.top;
        if (!a.drawn[row] || !(top - top == 0.0f)) continue;
        const float floor = a.min_p[row] > 0 ? top + std::log(a.min_p[row]) : -__builtin_inff();
        if (a.top_k[row] >= a.width && a.top_p[row] >= 1.0f) {
            a.tokens[row] = draw_from_all(tempered, floor, a.numbers[row], best);
            if (a.keep) write_kept(tempered, x, floor, nullptr);
            continue;
        }
        const Kept kept = keep_head(tempered, floor, a.top_k[row], a.top_p[row], scratch);
        a.tokens[row] = draw_from_head(kept, scratch, a.numbers[row], best);
        if (a.keep) write_kept(tempered, x, floor, &kept);
    }
}

inline int64_t count_from(const float* x, int64_t n, float least) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i += F32::width) {
        const uint32_t all = n - i >= F32::width ? ~0u : (1u << (n - i)) - 1;
        found += __builtin_popcount(bits(at_least(load(x + i, n - i), F32::all(least))) & all);
    }
    return found;
}

inline void rank(const Rank& a, Team& team) {
    Candidate* scratch = a.scratch + team.rank() * a.width;
    for (int64_t row = team.rank(); row < a.rows; row += team.size()) {
        const float* x = a.logits + row * a.stride;
        const Tempered plain{x, a.width, 1.0f, largest(x, a.width).value};
        const double lost = a.normalised ? plain.top + std::log(mass(plain, -__builtin_inff())) : 0.0;
        const auto said = [lost](float v) { return static_cast<float>(v - lost); };
        for (int64_t i = a.first[row]; i < a.first[row + 1]; ++i) {
            const float own = x[a.tokens[i]];
            a.values[i] = said(own);
            a.ranks[i] = count_from(x, a.width, own);
        }
        if (a.count == 0) continue;
        int64_t found = 0;
        for (float depth = 5; found < a.count && depth < 100; depth *= 2)
            found = collect(plain, depth > 40 ? -__builtin_inff() : plain.top - depth, scratch);
        for (; found < a.count; ++found) scratch[found] = {__builtin_nanf(""), 0, 0};  // of a row with NaN
        if (found > a.count) fewest(scratch, found, static_cast<double>(a.count), [](const Candidate&) { return 1.0; });
        sort(scratch, a.count);
        for (int64_t i = 0; i < a.count; ++i) {
            a.best[row * a.count + i] = scratch[i].index;
            a.best_values[row * a.count + i] = said(scratch[i].value);
        }
    }
}

inline void forbid(const Forbid& a, Team& team) {
    const auto [begin, end] = team.share(a.count);
    for (int64_t each = begin; each < end; ++each) {
        float* x = a.logits + a.rows[each] * a.stride;
        const uint32_t* mask = a.masks + a.rows[each] * a.words;
        for (int64_t start = 0; start < a.width; start += 32) {
            const uint32_t word = mask[start / 32];
            if (word == ~0u) continue;
            const int64_t count = a.width - start < 32 ? a.width - start : 32;
            for (int64_t i = 0; i < count; ++i) x[start + i] = word >> i & 1 ? x[start + i] : -__builtin_inff();
        }
    }
}
