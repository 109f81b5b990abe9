#include "bindings.h"

namespace headway {

void bind_norm(nb::class_<Sink>& sink) {
    sink.def(
        "rms_norm",
        [](Sink& self, uintptr_t out, uintptr_t x, uintptr_t weight, int64_t rows, int64_t width, int64_t out_stride, int64_t x_stride,
           float epsilon, int dtype, bool wide) {
            self.submit(self.kernels.rms_norm, RmsNorm{at<void>(out), at<void>(x), at<void>(weight), rows, width, out_stride, x_stride,
                                                       epsilon, static_cast<Dtype>(dtype), wide});
        },
        nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace headway
