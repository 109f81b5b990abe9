// Included inside the namespace of an instruction set. What a piece of attention works on: some rows (a query of one head each), a run
// of keys that they may see, and memory of the member that does it.

constexpr int64_t most_rows = 3 * F32::width;
constexpr int64_t few_rows = 8;    // up to here a register holds numbers of one row, above it one number of many rows
constexpr int64_t tile_keys = 64;  // keys whose scores are held at once

// Row r sees the keys at positions from[r] <= position < to[r]; both rise from row to row.
template <class T>
struct QueryRows {
    int64_t count;
    const T* query[most_rows];
    T* out[most_rows];
    int32_t from[most_rows], to[most_rows];
    const float* bias[most_rows];  // of the key at position 0
    bool biased;

    bool all_see(int64_t begin, int64_t end) const { return from[count - 1] <= begin && end <= to[0]; }
};

inline int64_t rounded_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// Neighbouring positions of a sequence and where their keys are; the value is `to_value` numbers after the key.
template <class Kv>
struct Tile {
    int64_t begin, count;
    const Kv* keys[tile_keys];
    float key_scales[tile_keys], value_scales[tile_keys];  // int8 only

    // Pointers up to a whole register, so that nobody has to look at the end.
    void fill_up() {
        for (int64_t i = count; i < rounded_up(count, F32::width); ++i) {
            keys[i] = keys[count - 1];
            key_scales[i] = value_scales[i] = 0.0f;
        }
    }
};

// The keys of one head of a sequence in blocks.
template <class Kv>
struct PagedKeys {
    const Kv* keys;
    int64_t to_value, head_dim, block_size;
    const int32_t* table;
    const float* key_scales;
    const float* value_scales;

    void fill(Tile<Kv>& tile, int64_t begin, int64_t end) const {
        tile.begin = begin;
        tile.count = end - begin;
        int64_t block = begin / block_size, offset = begin % block_size;
        for (int64_t i = 0; i < tile.count; ++block, offset = 0) {
            const int64_t slot = table[block] * block_size + offset;
            const int64_t most = block_size - offset, left = tile.count - i;
            const int64_t n = most < left ? most : left;
            const Kv* key = keys + slot * head_dim;
            for (int64_t j = 0; j < n; ++j) tile.keys[i + j] = key + j * head_dim;
            if constexpr (sizeof(Kv) == 1) {
                for (int64_t j = 0; j < n; ++j) {
                    tile.key_scales[i + j] = key_scales[slot + j];
                    tile.value_scales[i + j] = value_scales[slot + j];
                }
            }
            i += n;
        }
        tile.fill_up();
    }
};

// The keys of one head of a packed row.
template <class T>
struct RowKeys {
    const T* keys;
    int64_t to_value, head_dim, stride;

    void fill(Tile<T>& tile, int64_t begin, int64_t end) const {
        tile.begin = begin;
        tile.count = end - begin;
        for (int64_t i = 0; i < tile.count; ++i) tile.keys[i] = keys + (begin + i) * stride;
        tile.fill_up();
    }
};

// One member's memory.
struct Scratch {
    int64_t width;   // head_dim in whole registers
    float* query;    // units: [row][unit of the head] or [unit of the head][row]
    float* keys;     // units: [key][unit of the head]
    float* values;   // units: [unit of keys][number of the head]
    float* scores;   // [row][key] or [key][row]
    float* weights;  // units: [row][unit of keys] or [unit of keys][row]
    float* mixed;    // [number of the head][row]
    float* result;   // [row][number of the head], then the two of each row: largest score, sum of weights

    static int64_t result_size(int64_t width) { return most_rows * (width + 2); }
    static int64_t size(int64_t width) {
        return 2 * most_rows * width + 2 * tile_keys * width + 2 * tile_keys * most_rows + result_size(width);
    }
    Scratch(float* memory, int64_t head_dim) : width(rounded_up(head_dim, F32::width)) {
        query = memory;
        keys = query + most_rows * width;
        values = keys + tile_keys * width;
        scores = values + tile_keys * width;
        weights = scores + tile_keys * most_rows;
        mixed = weights + tile_keys * most_rows;
        result = mixed + most_rows * width;
    }
};

// Unnormalised results of some rows: of all the keys they see, or of a part of them.
struct Partial {
    float* mixed;    // [row][width]
    float* largest;  // [row], of the scores (in powers of two)
    float* sum;      // [row], of the weights
    Partial(float* memory, int64_t width) : mixed(memory), largest(memory + most_rows * width), sum(largest + most_rows) {}
};

template <class T>
void write_out(const QueryRows<T>& rows, const Partial& from, int64_t head_dim, int64_t width) {
    for (int64_t r = 0; r < rows.count; ++r) {
        const F32 scale = F32::all(1.0f / from.sum[r]);
        for (int64_t i = 0; i < head_dim; i += F32::width)
            store(rows.out[r] + i, load(from.mixed + r * width + i) * scale, head_dim - i);
    }
}
