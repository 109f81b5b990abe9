"""Headway: serve language models and the small models around them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headway.host.openmp import bound_spinning
from headway.host.primitive_cache import bound_primitive_caches
from headway.version import __version__

bound_spinning(os.environ)  # here, because it must come before anything imports torch
bound_primitive_caches(os.environ)

if TYPE_CHECKING:
    from headway.engine.beam_search import BeamSearchParams
    from headway.engine.llm import LLM
    from headway.engine.lora.lora_request import LoRARequest
    from headway.engine.outputs import CompletionOutput, RequestOutput
    from headway.engine.pooling.pooling_params import PoolingParams
    from headway.engine.sampling_params import SamplingParams

__all__ = ["LLM", "BeamSearchParams", "CompletionOutput", "LoRARequest", "PoolingParams", "RequestOutput", "SamplingParams", "__version__"]

_HOMES = {
    "LLM": "headway.engine.llm",
    "BeamSearchParams": "headway.engine.beam_search",
    "SamplingParams": "headway.engine.sampling_params",
    "LoRARequest": "headway.engine.lora.lora_request",
    "PoolingParams": "headway.engine.pooling.pooling_params",
    "RequestOutput": "headway.engine.outputs",
    "CompletionOutput": "headway.engine.outputs",
}


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that `headway --help` does not pay for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
