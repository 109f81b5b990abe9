#include "bindings.h"

namespace headway {

void bind_linear(nb::class_<Sink>& sink) {
    sink.def(
        "float_linear",
        [](Sink& self, uintptr_t out, uintptr_t bias, uintptr_t residual, int64_t width, int64_t out_stride, int64_t residual_stride,
           int out_dtype, int activation, uintptr_t x, uintptr_t weight, uintptr_t scratch, int64_t rows, int64_t inputs, int64_t x_stride,
           int x_dtype, int weight_dtype) {
            const LinearOutput to{at<void>(out), at<const float>(bias), at<const void>(residual), width, out_stride, residual_stride,
                                  static_cast<Dtype>(out_dtype), static_cast<LinearActivation>(activation)};
            self.submit(self.kernels.float_linear, FloatLinear{to, at<const void>(x), at<const void>(weight), at<void>(scratch), rows,
                                                               inputs, x_stride, static_cast<Dtype>(x_dtype),
                                                               static_cast<Dtype>(weight_dtype)});
        },
        nb::call_guard<nb::gil_scoped_release>());
    sink.def(
        "float_pack",
        [](Sink& self, uintptr_t panels, uintptr_t weight, int64_t channels, int64_t inputs, int64_t weight_stride, int64_t first,
           int dtype) {
            self.submit(self.kernels.float_pack, FloatPack{at<void>(panels), at<const void>(weight), channels, inputs, weight_stride, first,
                                                           static_cast<Dtype>(dtype)});
        },
        nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace headway
