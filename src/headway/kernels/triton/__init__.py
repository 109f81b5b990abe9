"""Kernels for GPUs in Triton. Nothing here is imported unless they are chosen: the package `triton` is optional (extra `gpu`)."""
