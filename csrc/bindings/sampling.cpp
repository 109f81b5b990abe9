#include "bindings.h"

namespace headway {

void bind_sampling(nb::class_<Sink>& sink) {
    const auto released = nb::call_guard<nb::gil_scoped_release>();
    sink.def(
        "argmax",
        [](Sink& self, uintptr_t tokens, uintptr_t values, uintptr_t logits, int64_t rows, int64_t width, int64_t stride) {
            self.submit(self.kernels.argmax, Argmax{at<int64_t>(tokens), at<float>(values), at<float>(logits), rows, width, stride});
        },
        released);
    sink.def(
        "draw",
        [](Sink& self, uintptr_t tokens, uintptr_t logits, uintptr_t best, uintptr_t temperature, uintptr_t min_p, uintptr_t top_k,
           uintptr_t top_p, uintptr_t numbers, uintptr_t drawn, uintptr_t scratch, int64_t rows, int64_t width, int64_t stride, bool keep) {
            self.submit(self.kernels.draw,
                        Draw{at<int64_t>(tokens), at<float>(logits), at<int64_t>(best), at<float>(temperature), at<float>(min_p),
                             at<int64_t>(top_k), at<float>(top_p), at<double>(numbers), at<bool>(drawn), at<Candidate>(scratch), rows,
                             width, stride, keep});
        },
        released);
    sink.def(
        "rank",
        [](Sink& self, uintptr_t values, uintptr_t ranks, uintptr_t best, uintptr_t best_values, uintptr_t logits, uintptr_t tokens,
           uintptr_t first, uintptr_t scratch, int64_t rows, int64_t width, int64_t stride, int64_t count, bool normalised) {
            self.submit(self.kernels.rank,
                        Rank{at<float>(values), at<int64_t>(ranks), at<int64_t>(best), at<float>(best_values), at<float>(logits),
                             at<int64_t>(tokens), at<int64_t>(first), at<Candidate>(scratch), rows, width, stride, count, normalised});
        },
        released);
    sink.def(
        "forbid",
        [](Sink& self, uintptr_t logits, uintptr_t masks, uintptr_t rows, int64_t count, int64_t width, int64_t stride, int64_t words) {
            self.submit(self.kernels.forbid,
                        Forbid{at<float>(logits), at<uint32_t>(masks), at<int64_t>(rows), count, width, stride, words});
        },
        released);
}

}  // namespace headway
