// Team: the threads that run kernels together. A kernel is a function that every member calls with the same arguments; each does its
// share, and `barrier` is where they wait for each other. One region may run many kernels (program.h): entering it costs microseconds,
// a barrier a tenth of one.
#pragma once

#include <atomic>
#include <cstdint>

namespace headway {

struct Range {
    int64_t begin, end;
};

class Team {
public:
    Team(int rank, int size, struct Meeting* meeting) : rank_(rank), size_(size), meeting_(meeting) {}

    int rank() const { return rank_; }
    int size() const { return size_; }

    // This member's share of [0, count), in multiples of `step` but for the end.
    Range share(int64_t count, int64_t step = 1) const {
        const int64_t units = (count + step - 1) / step;
        const int64_t begin = units * rank_ / size_ * step;
        const int64_t end = units * (rank_ + 1) / size_ * step;
        return {begin < count ? begin : count, end < count ? end : count};
    }

    void barrier();

    // Work that is handed out in pieces: returns 0, 1, 2 ... over all members. `restart` first, with a barrier on both sides of the work.
    int64_t next();
    void restart();

private:
    int rank_, size_;
    struct Meeting* meeting_;
};

// Calls `work(team, data)` on `threads` members, the caller being one of them, and returns when all have. Members are torch's own OpenMP
// threads, so that kernels and torch operators never compete for cores; without an OpenMP library in the process the caller is alone.
void run_team(int threads, void (*work)(Team&, void*), void* data);

// How many members `run_team` would have at most; whether an OpenMP library was found.
bool has_openmp();

}  // namespace headway
