// Included inside the namespace of an instruction set: how the rows of a linear layer are cut into tiles. Activations are laid out tile
// after tile, in a tile step of k after step of k the numbers of its rows, so that a product walks through them in one direction.

// `count` tiles of nearly the same height, none higher than `highest`.
struct RowTiles {
    int64_t rows, count;
    RowTiles(int64_t rows, int64_t highest) : rows(rows), count((rows + highest - 1) / highest) {}
    int64_t begin(int64_t tile) const { return rows * tile / count; }
    int64_t height(int64_t tile) const { return begin(tile + 1) - begin(tile); }
};

// What a product asks for while it works, a piece in each step of k: the next panel, which the last two tiles of this one bring into the
// second level of cache. Without it the first tile of a panel waits for memory and the others let memory wait: 149 us instead of 125
// (16 rows, [576, 1536] in bfloat16). A panel with one tile is read in one go, which the processor foresees by itself.
struct Ahead {
    const char* at;
    int64_t bytes;  // in a step, at most a line of the cache
    Ahead(const void* panel, int64_t panel_bytes, int64_t steps, int64_t tile, int64_t tiles, const void* here)
        : at(static_cast<const char*>(here)), bytes(0) {
        const int64_t left = tiles - tile;
        if (tiles < 2 || left > 2) return;
        bytes = panel_bytes / steps / 2;
        at = static_cast<const char*>(panel) + panel_bytes + (left == 1 ? panel_bytes / 2 : 0);
    }
    void step() {
        _mm_prefetch(at, _MM_HINT_T1);
        at += bytes;
    }
};
