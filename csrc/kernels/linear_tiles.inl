// Included inside the namespace of an instruction set: how the rows of a linear layer are cut into tiles. Activations are laid out tile
// after tile, in a tile step of k after step of k the numbers of its rows, so that a product walks through them in one direction.

// `count` tiles of nearly the same height, none higher than `highest`.
struct RowTiles {
    int64_t rows, count;
    RowTiles(int64_t rows, int64_t highest) : rows(rows), count((rows + highest - 1) / highest) {}
    int64_t begin(int64_t tile) const { return rows * tile / count; }
    int64_t height(int64_t tile) const { return begin(tile + 1) - begin(tile); }
};
