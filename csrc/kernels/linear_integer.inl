// Included inside the namespace of an instruction set.

struct IntegerShape {
    int64_t groups, group_steps, heads, group_bytes, panel_bytes;
    IntegerShape(const IntegerForm& form, int64_t inputs) {
        groups = (inputs + form.group - 1) / form.group;
        group_steps = form.group / 4;
        heads = (form.plain ? 0 : 1) + (form.floors ? 1 : 0);
        group_bytes = group_steps * (form.bits == 4 ? CodeStep<4>::bytes : CodeStep<8>::bytes) + heads * 64;
        panel_bytes = groups * group_bytes;
    }
};

// The rows of a tile, as the products read them: numbers of its rows side by side.
struct IntegerTile {
    const int32_t* x;       // [steps / 4][rows][4], four codes each
    const int32_t* starts;  // [groups][rows]: -offset times the sum of the codes
    const float* scales;    // [groups][rows]: of the codes
    const float* sums;      // [groups][rows]: the sum of the codes times their scale
};

// The scratch of all rows: each part of it for all tiles, one after the other.
struct IntegerScratch {
    int32_t* x;
    int32_t* starts;
    float* scales;
    float* sums;
    IntegerShape shape;
    IntegerScratch(void* memory, const IntegerShape& shape, int64_t rows) : shape(shape) {
        x = static_cast<int32_t*>(memory);
        starts = x + rows * shape.groups * shape.group_steps;
        scales = reinterpret_cast<float*>(starts + rows * shape.groups);
        sums = scales + rows * shape.groups;
    }
    IntegerTile tile(int64_t first_row) const {
        const int64_t groups = first_row * shape.groups;
        return {x + groups * shape.group_steps, starts + groups, scales + groups, sums + groups};
    }
};

// As many rows as there are registers for their sums, of int32 and of float32. (Twice as many, with those of float32 in memory, are slower.)
constexpr int64_t highest_integer_tile = F32::width == 16 ? 6 : 2;

// sums [R][panel_width]: R rows times a panel.
template <int bits, bool plain, bool floors, int R>
void multiply_codes(float* sums, const uint8_t* panel, const IntegerShape& shape, const IntegerTile& tile, const float* multipliers, Ahead ahead) {
    using Step = CodeStep<bits>;
    using Product = ByteProducts<bits>;
    constexpr int64_t half = panel_width / 2;
    constexpr int heads = (plain ? 0 : 1) + (floors ? 1 : 0);
    for (int64_t at = 0; at < half; at += F32::width) {
        F32 total[R][2];
        I32 c[R][2];
        for (int r = 0; r < R; ++r) total[r][0] = total[r][1] = F32::zero();
        const uint8_t* p = panel;
        const int32_t* x = tile.x;
        for (int64_t g = 0; g < shape.groups; ++g) {
            const uint16_t* head = reinterpret_cast<const uint16_t*>(p) + at;
            for (int i = 0; i < heads; ++i) ahead.step();
            p += heads * 64;
            for (int r = 0; r < R; ++r) c[r][0] = c[r][1] = I32::all(tile.starts[g * R + r]);
            for (int64_t s = 0; s < shape.group_steps; s += 4, x += 4 * R)
#pragma GCC unroll 4
                for (int i = 0; i < 4; ++i, p += Step::bytes) {
                    ahead.step();
                    const typename Product::Code w0(Step::first(p, at)), w1(Step::second(p, at));
#pragma GCC unroll 16
                    for (int r = 0; r < R; ++r) {
                        const typename Product::Row one(x + 4 * r + i);
                        c[r][0] = Product::add(c[r][0], w0, one);
                        c[r][1] = Product::add(c[r][1], w1, one);
                    }
                }
            for (int v = 0; v < 2; ++v) {
                const F32 weight_scale = plain ? F32::zero() : load_halves(head + v * half);
                const F32 floor = floors ? load_halves(head + panel_width + v * half) : F32::zero();
#pragma GCC unroll 16
                for (int r = 0; r < R; ++r) {
                    const F32 scale = F32::all(tile.scales[g * R + r]), products = to_float(c[r][v]);
                    total[r][v] = plain ? fma(products, scale, total[r][v]) : fma(products * scale, weight_scale, total[r][v]);
                    if (floors) total[r][v] = fma(F32::all(tile.sums[g * R + r]), floor, total[r][v]);
                }
            }
        }
        for (int v = 0; v < 2; ++v) {
            const F32 multiplier = load(multipliers + at + v * half);
            for (int r = 0; r < R; ++r) store(sums + r * panel_width + v * half + at, total[r][v] * multiplier);
        }
    }
}

template <int bits, bool plain, bool floors>
void multiply_codes_of_rows(int64_t rows, float* sums, const uint8_t* panel, const IntegerShape& shape, const IntegerTile& tile,
                            const float* multipliers, Ahead ahead) {
    static constexpr void (*by_rows[])(float*, const uint8_t*, const IntegerShape&, const IntegerTile&, const float*, Ahead) = {
        multiply_codes<bits, plain, floors, 1>, multiply_codes<bits, plain, floors, 2>,
#if defined(__AVX512F__)
        multiply_codes<bits, plain, floors, 3>, multiply_codes<bits, plain, floors, 4>,
        multiply_codes<bits, plain, floors, 5>, multiply_codes<bits, plain, floors, 6>,
#endif
    };
    by_rows[rows - 1](sums, panel, shape, tile, multipliers, ahead);
}

// Group `g` of row `r` of a tile, `part` on: its codes, their scale and their sum.
template <class T>
void quantize_group(const T* part, int64_t count, const IntegerForm& form, const IntegerScratch& to, int64_t first_row, int64_t height, int64_t r,
                    int64_t g) {
    const int64_t place = first_row * to.shape.groups + g * height + r;
    I32 largest = I32::all(0);
    for (int64_t i = 0; i < count; i += F32::width) largest = max(largest, as_bits(abs(load(part + i, count - i))));
    // Magnitudes are in the order of their bits, and what is not finite comes last.
    const float top = from_bits(reduce_max(largest));
    const bool finite = top <= std::numeric_limits<float>::max();
    const F32 inverse = F32::all(finite && top > 0.0f ? 127.0f / top : 0.0f);
    int32_t* codes = to.x + (first_row * to.shape.groups + g * height) * to.shape.group_steps + 4 * r;
    F32 sum = F32::zero();
    for (int64_t i = 0; i < form.group; i += F32::width) {
        const F32 whole = i < count ? nearest(load(part + i, count - i) * inverse) : F32::zero();
        sum = sum + whole;
        store_codes(reinterpret_cast<int8_t*>(codes + i / 16 * 4 * height) + i % 16, whole);
    }
    const float scale = finite ? top / 127.0f : std::numeric_limits<float>::quiet_NaN(), total = finite ? reduce_add(sum) : 0.0f;
    to.starts[place] = -form.offset * static_cast<int32_t>(total);
    to.scales[place] = scale;
    to.sums[place] = total * scale;
}

// Groups of all rows, one after the other.
template <class T>
void quantize_groups(const IntegerLinear& a, const IntegerScratch& to, const RowTiles& tiles, Range groups) {
    const int64_t in_row = to.shape.groups;
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
        const int64_t first = tiles.begin(tile), height = tiles.height(tile);
        const int64_t begin = groups.begin > first * in_row ? groups.begin : first * in_row;
        const int64_t end = groups.end < (first + height) * in_row ? groups.end : (first + height) * in_row;
        for (int64_t i = begin; i < end; ++i) {
            const int64_t row = i / in_row, g = i % in_row, start = g * a.form.group;
            const int64_t count = a.inputs - start < a.form.group ? a.inputs - start : a.form.group;
            quantize_group(static_cast<const T*>(a.x) + row * a.x_stride + start, count, a.form, to, first, height, row - first, g);
        }
    }
}

template <int bits, bool plain, bool floors>
void integer_linear_of(const IntegerLinear& a, Team& team) {
    const IntegerShape shape(a.form, a.inputs);
    const RowTiles tiles(a.rows, highest_integer_tile);
    const IntegerScratch scratch(a.scratch, shape, a.rows);
    const Range groups = team.share(a.rows * shape.groups);
    if (a.x_dtype == Dtype::float32) quantize_groups<float>(a, scratch, tiles, groups);
    else quantize_groups<bf16>(a, scratch, tiles, groups);
    team.barrier();
    const int64_t panels = (a.to.width + panel_width - 1) / panel_width;
    const auto [begin, end] = team.share(panels * tiles.count);
    alignas(64) float sums[highest_integer_tile * panel_width];
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t panel = unit / tiles.count, tile = unit % tiles.count;
        const int64_t row = tiles.begin(tile), height = tiles.height(tile), channel = panel * panel_width;
        const uint8_t* weight = static_cast<const uint8_t*>(a.weight) + panel * shape.panel_bytes;
        const Ahead ahead(weight, shape.panel_bytes, shape.groups * (shape.group_steps + shape.heads), tile, tiles.count, sums);
        multiply_codes_of_rows<bits, plain, floors>(height, sums, weight, shape, scratch.tile(row), a.multipliers + channel, ahead);
        finish(a.to, row, height, channel, sums);
    }
}

inline void integer_linear(const IntegerLinear& a, Team& team) {
    if (a.form.bits == 4) {
        if (a.form.floors) integer_linear_of<4, false, true>(a, team);
        else integer_linear_of<4, false, false>(a, team);
    } else {
        if (a.form.plain) integer_linear_of<8, true, false>(a, team);
        else if (a.form.floors) integer_linear_of<8, false, true>(a, team);
        else integer_linear_of<8, false, false>(a, team);
    }
}
