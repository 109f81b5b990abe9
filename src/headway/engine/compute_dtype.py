"""Which dtype a model computes in on this machine."""

from __future__ import annotations

import logging

import torch

from headway.artifacts.card import ModelCard

_log = logging.getLogger(__name__)
_NAMED = {"bfloat16": torch.bfloat16, "half": torch.float16, "float16": torch.float16, "float": torch.float32, "float32": torch.float32}


def compute_dtype(asked: str, card: ModelCard) -> torch.dtype:
    """`auto`: bfloat16 where the CPU has arithmetic for it, whatever the checkpoint stores (vLLM: 16 bit is preferred, and
    GGUF is run in bf16), else float32. float16 is accepted and run as bfloat16: no CPU kernel here computes in it."""
    dtype = _NAMED.get(asked)
    fast_bf16 = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) if torch._C._has_mkldnn else False
    if dtype is None:
        dtype = torch.bfloat16 if fast_bf16 else torch.float32
        _log.info("dtype auto: computing in %s (checkpoint: %s)", dtype, ", ".join(sorted(card.dtype_bytes)))
    elif dtype is torch.float16:
        dtype = torch.bfloat16
        _log.warning("--dtype %s: CPUs have no fast float16 arithmetic; computing in bfloat16 instead", asked)
    if dtype is torch.bfloat16 and not fast_bf16:
        _log.warning("this CPU has no AVX-512: bfloat16 is emulated and slow; --dtype float32 is faster here")
    return dtype
