// Included inside the namespace of an instruction set. Who computes what. All pieces of work (a sequence, a kv head, a tile of rows and
// the keys they see) lie on a line, as long as they are costly; the line is cut into parts of equal length, and a member takes one part
// after the other. A cut may fall between the keys of a piece: then the results of both sides are kept in the workspace, and joined
// when all parts are done.

// Sequence i of a problem: queries at the positions [first, first + count) and, from `token` on, in the flattened batch.
struct Sequence {
    int64_t index, token, first, count;
};

struct Piece {
    Sequence sequence;
    int64_t head;         // of keys
    int64_t row, rows;    // of the sequence's queries * heads of a group, query by query
    Range keys;           // that any of the rows sees
    int64_t start;        // on the line
    int64_t cost_of_key;
};

constexpr int64_t piece_overhead = 16;  // in keys

// Where position `cut` of the line falls in a piece: after so many keys, whole tiles of them.
inline int64_t keys_before(const Piece& piece, int64_t cut) {
    const int64_t count = piece.keys.end - piece.keys.begin;
    if (cut <= piece.start) return 0;
    const int64_t keys = (cut - piece.start) / piece.cost_of_key - piece_overhead;
    if (keys < tile_keys / 2) return 0;
    if (keys + tile_keys / 2 >= count) return count;
    return (keys + tile_keys / 2) / tile_keys * tile_keys;
}

// `Problem` has: count() sequences; sequence(i, token) -> Sequence; group (rows for each query), heads (of keys); visible(sequence,
// position) -> Range of keys.
template <class Problem, class Visit>
void for_each_tile(const Problem& problem, const Sequence& sequence, Visit visit) {
    const int64_t rows = sequence.count * problem.group;
    for (int64_t row = 0; row < rows; row += most_rows) {
        Piece piece;
        piece.sequence = sequence;
        piece.row = row;
        piece.rows = rows - row < most_rows ? rows - row : most_rows;
        piece.keys = {problem.visible(sequence, sequence.first + row / problem.group).begin,
                      problem.visible(sequence, sequence.first + (row + piece.rows - 1) / problem.group).end};
        // Reading a key and its value from memory takes about as long as computing with 8 rows.
        piece.cost_of_key = 8 + (piece.rows <= few_rows ? piece.rows : rounded_up(piece.rows, F32::width));
        visit(piece, (piece.keys.end - piece.keys.begin + piece_overhead) * piece.cost_of_key);
    }
}

template <class Problem>
int64_t cost_of_head(const Problem& problem, const Sequence& sequence) {
    int64_t cost = 0;
    for_each_tile(problem, sequence, [&](const Piece&, int64_t of_tile) { cost += of_tile; });
    return cost;
}

template <class Problem>
int64_t length_of_line(const Problem& problem) {
    int64_t length = 0, token = 0;
    for (int64_t i = 0; i < problem.count(); ++i) {
        const Sequence sequence = problem.sequence(i, token);
        length += cost_of_head(problem, sequence) * problem.heads;
        token += sequence.count;
    }
    return length;
}

// Calls visit(piece, keys before, keys up to) for what lies in [begin, end) of the line.
template <class Problem, class Visit>
void for_each_piece(const Problem& problem, int64_t begin, int64_t end, Visit visit) {
    int64_t start = 0, token = 0;
    for (int64_t i = 0; i < problem.count() && start < end; ++i) {
        const Sequence sequence = problem.sequence(i, token);
        token += sequence.count;
        const int64_t of_head = cost_of_head(problem, sequence);
        for (int64_t head = 0; head < problem.heads; ++head) {
            if (start + of_head <= begin || start >= end) {
                start += of_head;
                continue;
            }
            for_each_tile(problem, sequence, [&](Piece& piece, int64_t cost) {
                piece.head = head;
                piece.start = start;
                start += cost;
                if (start <= begin || piece.start >= end) return;
                const int64_t from = keys_before(piece, begin), to = start <= end ? piece.keys.end - piece.keys.begin : keys_before(piece, end);
                if (from < to) visit(piece, from, to);
            });
        }
    }
}

// The line of one call, cut into parts.
struct Line {
    int64_t length, parts;
    int64_t cut(int64_t part) const { return length * part / parts; }
};

constexpr int64_t most_parts_of_member = 4;
constexpr int64_t least_part = 1 << 14;  // costs, some 20 microseconds: below it, handing out parts costs more than unequal members

template <class Problem>
Line cut_line(const Problem& problem, const Team& team) {
    const int64_t length = length_of_line(problem);
    if (team.size() == 1) return {length, 1};
    int64_t each = length / (team.size() * least_part);
    each = each < 1 ? 1 : each > most_parts_of_member ? most_parts_of_member : each;
    return {length, team.size() * each};
}

// Results of the two pieces of a part that may be cut: the one at its beginning, and the one at its end.
inline float* kept(float* memory, int64_t width, int64_t part, bool begun_before) {
    return memory + (2 * part + (begun_before ? 0 : 1)) * Scratch::result_size(width);
}

inline void add_partial(const Partial& to, const Partial& other, int64_t row, int64_t width) {
    const float largest = to.largest[row] > other.largest[row] ? to.largest[row] : other.largest[row];
    float lanes[2][F32::width];
    store(lanes[0], power_of_two<true>(F32::all(to.largest[row] - largest)));
    store(lanes[1], power_of_two<true>(F32::all(other.largest[row] - largest)));
    const F32 ours = F32::all(lanes[0][0]), theirs = F32::all(lanes[1][0]);
    float* mixed = to.mixed + row * width;
    for (int64_t i = 0; i < width; i += F32::width)
        store(mixed + i, fma(load(mixed + i), ours, load(other.mixed + row * width + i) * theirs));
    to.sum[row] = to.sum[row] * lanes[0][0] + other.sum[row] * lanes[1][0];
    to.largest[row] = largest;
}

// The results of a piece whose last keys are in `part`: those of its parts, each by what its weights are worth beside the largest score.
template <class Problem>
void join(const Problem& problem, const Line& line, const Piece& piece, int64_t part, float* partials, int64_t width) {
    const Partial result(kept(partials, width, part, true), width);
    for (int64_t before = part - 1; before >= 0; --before) {
        const int64_t from = keys_before(piece, line.cut(before));
        if (from < keys_before(piece, line.cut(before + 1))) {
            const Partial other(kept(partials, width, before, from > 0), width);
            for (int64_t r = 0; r < piece.rows; ++r) add_partial(result, other, r, width);
        }
        if (from == 0) break;
    }
    problem.write(piece, result);
}

// All parts, then the pieces that were cut. `Problem` has also: memory (of the workspace), head_dim, and
//   attend(piece, keys, scratch, partial): unnormalised results of the piece over some of its keys
//   write(piece, partial): results to where they belong
template <class Problem>
void attend_together(const Problem& problem, Team& team) {
    const Line line = cut_line(problem, team);
    const int64_t width = rounded_up(problem.head_dim, F32::width);
    float* partials = problem.memory + team.size() * Scratch::size(width);
    const Scratch scratch(problem.memory + team.rank() * Scratch::size(width), problem.head_dim);
    const bool handed_out = line.parts > team.size();
    if (handed_out) {
        team.restart();
        team.barrier();
    }
    for (int64_t part = handed_out ? team.next() : team.rank(); part < line.parts; part = handed_out ? team.next() : line.parts) {
        for_each_piece(problem, line.cut(part), line.cut(part + 1), [&](const Piece& piece, int64_t from, int64_t to) {
            const int64_t count = piece.keys.end - piece.keys.begin;
            const bool whole = from == 0 && to == count;
            const Partial result(whole ? scratch.result : kept(partials, width, part, from > 0), width);
            problem.attend(piece, {piece.keys.begin + from, piece.keys.begin + to}, scratch, result);
            if (whole) problem.write(piece, result);
        });
    }
    if (line.parts == 1) return;
    team.barrier();
    const Range mine = team.share(line.parts);
    for (int64_t part = mine.begin; part < mine.end; ++part) {
        bool first = true;
        for_each_piece(problem, line.cut(part), line.cut(part + 1), [&](const Piece& piece, int64_t from, int64_t to) {
            if (first && from > 0 && to == piece.keys.end - piece.keys.begin) join(problem, line, piece, part, partials, width);
            first = false;
        });
    }
}
