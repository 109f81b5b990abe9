"""Which dtype keys and values are kept in."""

from __future__ import annotations

import torch

from headway.errors import ConfigError
from headway.kernels.interface import Kernels


def cache_dtype(asked: str, dtype: torch.dtype, kernels: Kernels) -> torch.dtype:
    """`asked` by --kv-cache-dtype: auto = `dtype`, that of the model; int8. Raises ConfigError (`quantized_cache_unsupported`) where the
    kernels cannot read what was asked for."""
    if asked == "auto":
        return dtype
    if not kernels.quantized_cache:
        raise ConfigError(
            f"--kv-cache-dtype {asked}: a quantized cache is read by the compiled kernels only, and this model runs on those called"
            f" {kernels.name}",
            reason="quantized_cache_unsupported", param="kv_cache_dtype",
            fix="Leave --kv-cache-dtype out, or run with the compiled kernels (headway env tells which are there), without --batch-invariant.",
        )  # fmt: skip
    return torch.int8
