#include "bindings.h"

namespace headway {

namespace {

// `activation` is negative for none.
LinearOutput output(uintptr_t out, uintptr_t bias, uintptr_t residual, int64_t width, int64_t out_stride, int64_t residual_stride, int dtype,
                    int activation) {
    return {at<void>(out), at<const float>(bias), at<const void>(residual), width, out_stride, residual_stride, static_cast<Dtype>(dtype),
            activation >= 0, static_cast<Activation>(activation)};
}

}  // namespace

void bind_linear(nb::class_<Sink>& sink) {
    sink.def(
        "float_linear",
        [](Sink& self, uintptr_t out, uintptr_t bias, uintptr_t residual, int64_t width, int64_t out_stride, int64_t residual_stride,
           int out_dtype, int activation, uintptr_t x, uintptr_t weight, uintptr_t scratch, int64_t rows, int64_t inputs, int64_t x_stride,
           int x_dtype, int weight_dtype) {
            self.submit(self.kernels.float_linear, FloatLinear{output(out, bias, residual, width, out_stride, residual_stride, out_dtype, activation), at<const void>(x), at<const void>(weight), at<void>(scratch), rows,
                                                               inputs, x_stride, static_cast<Dtype>(x_dtype),
                                                               static_cast<Dtype>(weight_dtype)});
        },
        nb::call_guard<nb::gil_scoped_release>());
    sink.def(
        "integer_linear",
        [](Sink& self, uintptr_t out, uintptr_t bias, uintptr_t residual, int64_t width, int64_t out_stride, int64_t residual_stride,
           int out_dtype, int activation, uintptr_t x, uintptr_t weight, uintptr_t multipliers, uintptr_t scratch, int bits, int offset,
           int64_t group, bool plain, bool floors, int64_t rows, int64_t inputs, int64_t x_stride, int x_dtype) {
            self.submit(self.kernels.integer_linear,
                        IntegerLinear{output(out, bias, residual, width, out_stride, residual_stride, out_dtype, activation),
                                      at<const void>(x), at<const void>(weight), at<const float>(multipliers), at<void>(scratch),
                                      {bits, offset, group, plain, floors}, rows, inputs, x_stride, static_cast<Dtype>(x_dtype)});
        },
        nb::call_guard<nb::gil_scoped_release>());
    sink.def(
        "integer_pack",
        [](Sink& self, uintptr_t panels, uintptr_t multipliers, uintptr_t codes, uintptr_t scales, uintptr_t floors_at, int bits, int offset,
           int64_t group, bool plain, bool floors, int flip, int64_t channels, int64_t inputs, int64_t first) {
            self.submit(self.kernels.integer_pack,
                        IntegerPack{at<void>(panels), at<float>(multipliers), at<const uint8_t>(codes), at<const float>(scales),
                                    at<const float>(floors_at), {bits, offset, group, plain, floors}, static_cast<uint8_t>(flip), channels,
                                    inputs, first});
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
