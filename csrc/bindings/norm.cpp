#include "bindings.h"

namespace headway {

void bind_norm(nb::class_<Sink>& sink) {
    sink.def(
        "norm",
        [](Sink& self, uintptr_t out, uintptr_t x, uintptr_t weight, uintptr_t bias, uintptr_t residual, int64_t rows, int64_t heads,
           int64_t width, int64_t out_stride, int64_t x_stride, float epsilon, float scale, int dtype, bool wide, bool layer) {
            self.submit(self.kernels.norm, Norm{at<void>(out), at<void>(x), at<void>(weight), at<void>(bias), at<void>(residual), rows,
                                                heads, width, out_stride, x_stride, epsilon, scale, static_cast<Dtype>(dtype), wide, layer});
        },
        nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace headway
