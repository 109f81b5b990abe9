"""Layers: what a decoder is built from, on top of kernels. A layer is made empty and filled by `load`."""
