#include "team.h"

#include <dlfcn.h>
#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headway {

// Shared by the members of one region.
struct Meeting {
    alignas(64) std::atomic<int> waiting{0};
    alignas(64) std::atomic<int> round{0};
    alignas(64) std::atomic<int64_t> counter{0};
};

namespace {

inline void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

// The OpenMP library that torch has loaded; its symbols are global (libtorch_global_deps). GNU's and LLVM's both have these names.
struct OpenMP {
    void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
    int (*rank)();
    int (*size)();

    OpenMP() {
        parallel = reinterpret_cast<decltype(parallel)>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
        rank = reinterpret_cast<decltype(rank)>(dlsym(RTLD_DEFAULT, "omp_get_thread_num"));
        size = reinterpret_cast<decltype(size)>(dlsym(RTLD_DEFAULT, "omp_get_num_threads"));
    }

    bool found() const { return parallel && rank && size; }
};

const OpenMP& openmp() {
    static const OpenMP library;
    return library;
}

struct Region {
    void (*work)(Team&, void*);
    void* data;
    Meeting meeting;
};

void member(void* argument) {
    auto* region = static_cast<Region*>(argument);
    Team team(openmp().rank(), openmp().size(), &region->meeting);
    region->work(team, region->data);
}

}  // namespace

void Team::barrier() {
    if (size_ == 1) return;
    const int round = meeting_->round.load(std::memory_order_relaxed);
    if (meeting_->waiting.fetch_add(1, std::memory_order_acq_rel) == size_ - 1) {
        meeting_->waiting.store(0, std::memory_order_relaxed);
        meeting_->round.store(round + 1, std::memory_order_release);
        return;
    }
    // Somebody else's process may hold the core that we wait for: after a while, let it run.
    for (int spins = 0; meeting_->round.load(std::memory_order_acquire) == round; ++spins) {
        if (spins < 4096) pause();
        else sched_yield();
    }
}

int64_t Team::next() { return meeting_->counter.fetch_add(1, std::memory_order_relaxed); }

void Team::restart() {
    if (rank_ == 0) meeting_->counter.store(0, std::memory_order_relaxed);
}

void run_team(int threads, void (*work)(Team&, void*), void* data) {
    Region region{work, data, {}};
    if (threads > 1 && openmp().found()) {
        openmp().parallel(member, &region, static_cast<unsigned>(threads), 0);
        return;
    }
    Team alone(0, 1, &region.meeting);
    work(alone, data);
}

bool has_openmp() { return openmp().found(); }

}  // namespace headway
