#include "bindings.h"

namespace headway {

namespace {

PagedLayer paged_layer(uintptr_t keys, uintptr_t values, uintptr_t key_scales, uintptr_t value_scales, int64_t head_stride,
                       int64_t kv_heads, int64_t head_dim, int64_t block_size, int dtype) {
    return {at<void>(keys), at<void>(values), at<float>(key_scales), at<float>(value_scales), head_stride, kv_heads, head_dim, block_size,
            static_cast<KvDtype>(dtype)};
}

}  // namespace

void bind_attention(nb::class_<Sink>& sink) {
    const auto released = nb::call_guard<nb::gil_scoped_release>();
    nb::class_<PagedLayer>(sink, "PagedLayer").def("__init__", [](PagedLayer* self, uintptr_t keys, uintptr_t values, uintptr_t key_scales,
                                                                  uintptr_t value_scales, int64_t head_stride, int64_t kv_heads,
                                                                  int64_t head_dim, int64_t block_size, int dtype) {
        new (self) PagedLayer(paged_layer(keys, values, key_scales, value_scales, head_stride, kv_heads, head_dim, block_size, dtype));
    });
    sink.def_static("attention_workspace", attention_workspace);
    sink.def(
        "kv_store",
        [](Sink& self, const PagedLayer& kv, uintptr_t rows, uintptr_t slots, int64_t tokens, int64_t row_stride, int dtype) {
            self.submit(self.kernels.kv_store,
                        KvStore{kv, at<void>(rows), at<int64_t>(slots), tokens, row_stride, static_cast<Dtype>(dtype)});
        },
        released);
    sink.def(
        "rotate_and_store",
        [](Sink& self, const PagedLayer& kv, uintptr_t rows, uintptr_t slots, uintptr_t cos, uintptr_t sin, int64_t tokens, int64_t heads,
           int64_t half, int64_t row_stride, int64_t table_stride, int dtype) {
            self.submit(self.kernels.rotate_and_store, RotateAndStore{kv, at<void>(rows), at<int64_t>(slots), at<void>(cos), at<void>(sin),
                                                                      tokens, heads, half, row_stride, table_stride,
                                                                      static_cast<Dtype>(dtype)});
        },
        released);
    sink.def(
        "attend",
        [](Sink& self, const PagedLayer& kv, uintptr_t out, uintptr_t query, uintptr_t query_lens, uintptr_t context_lens,
           uintptr_t block_tables, uintptr_t bias, uintptr_t workspace, int64_t sequences, int64_t heads, int64_t query_stride,
           int64_t table_stride, int64_t bias_stride, int64_t window, float scale, float softcap, int dtype) {
            self.submit(self.kernels.attend,
                        Attend{kv, at<void>(out), at<void>(query), at<int32_t>(query_lens), at<int32_t>(context_lens),
                               at<int32_t>(block_tables), at<float>(bias), at<void>(workspace), sequences, heads, query_stride,
                               table_stride, bias_stride, window, scale, softcap, static_cast<Dtype>(dtype)});
        },
        released);
    sink.def(
        "attend_rows",
        [](Sink& self, uintptr_t out, uintptr_t qkv, uintptr_t starts, uintptr_t bias, uintptr_t workspace, int64_t rows, int64_t heads,
           int64_t head_dim, int64_t qkv_stride, int64_t bias_head_stride, int64_t bias_row_stride, int64_t reach, float scale, int dtype) {
            self.submit(self.kernels.attend_rows,
                        AttendRows{at<void>(out), at<void>(qkv), at<int64_t>(starts), at<float>(bias), at<void>(workspace), rows, heads,
                                   head_dim, qkv_stride, bias_head_stride, bias_row_stride, reach, scale, static_cast<Dtype>(dtype)});
        },
        released);
}

// An upper bound for every instruction set: 48 rows, 64 keys; each member's own memory, and two partial results for each of 4 parts.
int64_t attention_workspace(int64_t head_dim, int64_t members) {
    const int64_t width = (head_dim + 15) / 16 * 16, rows = 48, keys = 64;
    const int64_t result = rows * (width + 2);
    const int64_t own = 2 * rows * width + 2 * keys * width + 2 * keys * rows + result;
    return members * (own + 8 * result) * static_cast<int64_t>(sizeof(float));
}

}  // namespace headway
