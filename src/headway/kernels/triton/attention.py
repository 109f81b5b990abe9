"""`Kernels.attend`: sequences that decode through one kernel, runs of new tokens through the other, in any mixture."""

from __future__ import annotations

import torch

from headway.kernels.paged_kv import PagedKV
from headway.kernels.triton.attention_plan import TritonPlan
from headway.kernels.triton.decode_attention import attend_decodes
from headway.kernels.triton.prefill_attention import attend_prefills


def attend(
    query: torch.Tensor, kv: PagedKV, layer: int, plan: TritonPlan, window: int | None, scale: float, softcap: float | None,
    key_bias: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """query [T, H, D], of which the numbers of a head lie side by side."""
    tokens, heads, size = query.shape
    out = torch.empty(tokens, heads * size, dtype=query.dtype, device=query.device)
    if plan.decodes is not None:
        attend_decodes(out, query, kv, layer, plan, plan.decodes, window, scale, softcap, key_bias)
    if plan.prefills is not None:
        attend_prefills(out, query, kv, layer, plan, plan.prefills, window, scale, softcap, key_bias)
    return out
