#include "bindings.h"

namespace headway {

void bind_pointwise(nb::class_<Sink>& sink) {
    const auto released = nb::call_guard<nb::gil_scoped_release>();
    sink.def(
        "rotary_tables",
        [](Sink& self, uintptr_t cos, uintptr_t sin, uintptr_t positions, uintptr_t frequencies, int64_t rows, int64_t half, float factor,
           int dtype) {
            self.submit(self.kernels.rotary_tables, RotaryTables{at<void>(cos), at<void>(sin), at<int64_t>(positions),
                                                                 at<float>(frequencies), rows, half, factor, static_cast<Dtype>(dtype)});
        },
        released);
    sink.def(
        "rotate",
        [](Sink& self, uintptr_t x, uintptr_t cos, uintptr_t sin, int64_t rows, int64_t heads, int64_t half, int64_t row_stride,
           int64_t head_stride, int64_t table_stride, int dtype) {
            self.submit(self.kernels.rotate, Rotate{at<void>(x), at<void>(cos), at<void>(sin), rows, heads, half, row_stride, head_stride,
                                                    table_stride, static_cast<Dtype>(dtype)});
        },
        released);
    sink.def(
        "activate",
        [](Sink& self, uintptr_t out, uintptr_t x, int64_t rows, int64_t width, int64_t out_stride, int64_t x_stride, int activation, int dtype,
           bool gated) {
            self.submit(self.kernels.activate, Activate{at<void>(out), at<void>(x), rows, width, out_stride, x_stride,
                                                        static_cast<Activation>(activation), static_cast<Dtype>(dtype), gated});
        },
        released);
    sink.def(
        "gather",
        [](Sink& self, uintptr_t out, uintptr_t table, uintptr_t added, uintptr_t index, uintptr_t wrong, int64_t rows, int64_t width,
           int64_t table_rows, int64_t table_stride, float scale, int dtype) {
            self.submit(self.kernels.gather, Gather{at<void>(out), at<void>(table), at<void>(added), at<int64_t>(index),
                                                    at<int64_t>(wrong), rows, width, table_rows, table_stride, scale,
                                                    static_cast<Dtype>(dtype)});
        },
        released);
    sink.def(
        "add_scaled",
        [](Sink& self, uintptr_t out, uintptr_t residual, uintptr_t x, int64_t rows, int64_t width, float scale, int dtype) {
            self.submit(self.kernels.add_scaled, AddScaled{at<void>(out), at<void>(residual), at<void>(x), rows, width, scale,
                                                           static_cast<Dtype>(dtype)});
        },
        released);
    sink.def(
        "finish_logits",
        [](Sink& self, uintptr_t out, uintptr_t x, int64_t rows, int64_t width, int64_t out_stride, int64_t x_stride, float divisor,
           float softcap, int dtype) {
            self.submit(self.kernels.finish_logits, FinishLogits{at<float>(out), at<void>(x), rows, width, out_stride, x_stride, divisor,
                                                                 softcap, static_cast<Dtype>(dtype)});
        },
        released);
}

}  // namespace headway
