// The Python module headway.kernels._native.
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "cpu.h"

namespace headway {
namespace {

const KernelTable& table(const std::string& set) {
    const KernelTable* found = table_of(set);
    if (found == nullptr) throw std::invalid_argument("instruction set " + set + " cannot run here");
    return *found;
}

}  // namespace

NB_MODULE(_native, m) {
    m.def("usable_sets", usable_sets, "Names of the instruction sets that can run here, best first.");
    m.def("has_openmp", has_openmp, "Whether kernels run on more than one thread: torch's OpenMP library is in the process.");

    nb::class_<Sink> sink(m, "Sink");
    bind_attention(sink);
    bind_linear(sink);
    bind_norm(sink);
    bind_pointwise(sink);
    bind_sampling(sink);
    nb::class_<Executor, Sink>(m, "Executor").def("__init__", [](Executor* self, const std::string& set, int threads) {
        new (self) Executor(table(set), threads);
    });
    nb::class_<Program, Sink>(m, "Program")
        .def("__init__",
             [](Program* self, const std::string& set, int threads, int64_t tokens, int64_t outputs, int64_t sequences) {
                 new (self) Program(table(set), threads, {tokens, outputs, sequences});
             })
        .def("__len__", &Program::length)
        .def(
            "run", [](const Program& self, int64_t tokens, int64_t outputs, int64_t sequences) { self.run({tokens, outputs, sequences}); },
            nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace headway
