// One call of a kernel, and where it goes: at once (Executor), or onto a list that is run again and again with other numbers of rows
// (Program), in one region of the team. Memory is the caller's: arguments are addresses that stay valid while a program lives.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "kernel_table.h"
#include "team.h"

namespace headway {

// What changes between two runs of a program: tokens of the batch, rows that are wanted of it, sequences.
struct Sizes {
    int64_t tokens, outputs, sequences;
};

// Turns a size that was recorded into that of this run; sizes that are none of the three are constants.
struct Resize {
    Sizes recorded, now;
    int64_t operator()(int64_t size) const {
        if (size == recorded.tokens) return now.tokens;
        if (size == recorded.outputs) return now.outputs;
        if (size == recorded.sequences) return now.sequences;
        return size;
    }
};

class Call {
public:
    virtual ~Call() = default;
    virtual void run(Team& team) const = 0;
    virtual void run(Team& team, const Resize& resize) const = 0;
};

// `Args` is a plain struct with `void resize(const Resize&)`.
template <class Args>
class CallOf final : public Call {
public:
    CallOf(void (*kernel)(const Args&, Team&), const Args& args) : kernel_(kernel), args_(args) {}
    void run(Team& team) const override { kernel_(args_, team); }
    void run(Team& team, const Resize& resize) const override {
        Args resized = args_;
        resized.resize(resize);
        kernel_(resized, team);
    }

private:
    void (*kernel_)(const Args&, Team&);
    Args args_;
};

class Sink {
public:
    Sink(const KernelTable& kernels, int threads) : kernels(kernels), threads_(threads) {}
    virtual ~Sink() = default;
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;

    template <class Args>
    void submit(void (*kernel)(const Args&, Team&), const Args& args) {
        if (kernel == nullptr) throw std::runtime_error("this instruction set has no such kernel");
        take(std::make_unique<CallOf<Args>>(kernel, args));
    }

    const KernelTable& kernels;

protected:
    virtual void take(std::unique_ptr<Call> call) = 0;
    int threads_;
};

class Executor final : public Sink {
public:
    using Sink::Sink;

protected:
    void take(std::unique_ptr<Call> call) override;
};

class Program final : public Sink {
public:
    Program(const KernelTable& kernels, int threads, Sizes recorded);
    // No size may be larger than the recorded one: buffers were made for that.
    void run(Sizes now) const;
    size_t length() const { return calls_.size(); }

protected:
    void take(std::unique_ptr<Call> call) override { calls_.push_back(std::move(call)); }

private:
    std::vector<std::unique_ptr<Call>> calls_;
    Sizes recorded_;
};

}  // namespace headway
