#include "program.h"

namespace headway {

void Executor::take(std::unique_ptr<Call> call) {
    run_team(threads_, [](Team& team, void* data) { static_cast<Call*>(data)->run(team); }, call.get());
}

Program::Program(const KernelTable& kernels, int threads, Sizes recorded) : Sink(kernels, threads), recorded_(recorded) {
    const auto& [tokens, outputs, sequences] = recorded;
    if (tokens == outputs || outputs == sequences || tokens == sequences)
        throw std::invalid_argument("the three sizes that a program is recorded with must differ");
}

void Program::run(Sizes now) const {
    if (now.tokens > recorded_.tokens || now.outputs > recorded_.outputs || now.sequences > recorded_.sequences)
        throw std::invalid_argument("a size is larger than the program was recorded with");
    struct Data {
        const std::vector<std::unique_ptr<Call>>& calls;
        Resize resize;
    } data{calls_, {recorded_, now}};
    run_team(
        threads_,
        [](Team& team, void* pointer) {
            auto* data = static_cast<Data*>(pointer);
            for (const auto& call : data->calls) {
                call->run(team, data->resize);
                team.barrier();  // the next kernel reads what all members wrote
            }
        },
        &data);
}

}  // namespace headway
