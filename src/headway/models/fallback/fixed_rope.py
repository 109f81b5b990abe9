"""Rotary embeddings of transformers whose frequencies change with the length of a text, fixed for a deployment.

In a batch of many sequences they would follow the longest one, and keys in the cache would mean something else to the
next sequence. So the frequencies are those of the longest sequence that may come, as in native models.
"""

from __future__ import annotations

from typing import Any

import torch


def fix_frequencies(model: torch.nn.Module, context_length: int | None) -> None:
    """Let each rotary module take the frequencies for `context_length` positions, and never change them again. None: for
    a model without weights, whose frequencies are never looked at."""
    module: Any
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        if isinstance(kinds, str):
            module.rope_type = _fixed(module, kinds, context_length, {})
        elif isinstance(kinds, dict):
            module.rope_type = {
                layers: _fixed(module, kind, context_length, {"layer_type": layers}) for layers, kind in kinds.items()
            }


def _fixed(module: Any, kind: str, context_length: int | None, options: dict[str, Any]) -> str:
    if "dynamic" not in kind and kind != "longrope":
        return kind
    if context_length is None:
        return "default"
    with torch.no_grad():
        module(torch.zeros(1, 1, 1), torch.tensor([[context_length - 1]]), **options)
    return "default"
