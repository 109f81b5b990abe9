// From logits to tokens: what is forbidden, the largest of each row, a draw of each row, log-probabilities with their ranks. Rows are float32.
#pragma once

#include <cstdint>

#include "../number.h"

namespace headway {

// tokens[r] = the first place of the largest number of the row, values[r] that number; of a row with NaN the first NaN.
struct Argmax {
    int64_t* tokens;
    float* values;
    const float* logits;
    int64_t rows, width, stride;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

// One number of a row that may be kept.
struct Candidate {
    float value, weight;
    int32_t index;
};

// A draw from softmax(logits / temperature), of which these stay, one after the other: numbers of at least min_p times the largest
// probability; the top_k largest; of these the fewest whose probability reaches top_p. Of equal numbers the first ones stay.
// The token is the first one at which the probabilities, added up in the order of the vocabulary in float64, exceed number * their sum.
struct Draw {
    int64_t* tokens;     // [rows]; those of rows that are not drawn are `best`
    float* logits;       // with `keep` they become logits / temperature, and what did not stay minus infinity
    const int64_t* best; // [rows], by Argmax
    const float* temperature;
    const float* min_p;  // 0 = off
    const int64_t* top_k;  // width = off
    const float* top_p;    // 1 = off
    const double* numbers; // in [0, 1)
    const bool* drawn;
    Candidate* scratch;    // [members][2 * width]
    int64_t rows, width, stride;
    bool keep;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

// What is said of each row: the values of some tokens with their ranks (how many numbers of the row are at least as large), and the best
// ones, largest first, of equal ones the first. Values are logits, or with `normalised` their log_softmax.
struct Rank {
    float* values;             // of the asked tokens
    int64_t* ranks;
    int64_t* best;             // [rows][count]
    float* best_values;
    const float* logits;
    const int64_t* tokens;     // those of row r are tokens[first[r]] up to tokens[first[r + 1]]
    const int64_t* first;      // [rows + 1]
    Candidate* scratch;        // [members][width]
    int64_t rows, width, stride, count;
    bool normalised;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

// Numbers whose bit is 0 become minus infinity: bit i % 32 of word i / 32 is that of number i.
struct Forbid {
    float* logits;
    const uint32_t* masks;  // [rows of the logits][words]
    const int64_t* rows;    // which of them
    int64_t count, width, stride, words;

    template <class Resize>
    void resize(const Resize& to) {
        count = to(count);
    }
};

}  // namespace headway
