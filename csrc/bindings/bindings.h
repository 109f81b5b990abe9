// Each family of kernels adds the methods that record or run it. Addresses are integers (tensor.data_ptr()); the Python side checks
// shapes, strides and dtypes before it calls.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "../program.h"

namespace headway {

namespace nb = nanobind;

template <class T>
T* at(uintptr_t address) {
    return reinterpret_cast<T*>(address);
}

void bind_attention(nb::class_<Sink>& sink);
void bind_linear(nb::class_<Sink>& sink);
void bind_norm(nb::class_<Sink>& sink);
void bind_pointwise(nb::class_<Sink>& sink);
void bind_sampling(nb::class_<Sink>& sink);

}  // namespace headway
