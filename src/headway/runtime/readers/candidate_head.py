"""The candidate head of Decision 1.0 and 2.0 and of the Vela 2.0 decoders: options against the question.

`logit = <K c, Q q> / sqrt(d) + w . GELU(Mc c + Mq q)` with `c` and `q` layer-normed: the hidden states at the end of an
option and at the end of the prompt. float32. Tensor names and shapes: docs/families.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F

_EPS = 1e-5  # of torch's LayerNorm, which the published heads are made with


def head_shapes(hidden: int, head_dim: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the ten tensors."""
    return {
        "candidate_norm.weight": (hidden,), "candidate_norm.bias": (hidden,),
        "query_norm.weight": (hidden,), "query_norm.bias": (hidden,),
        "key.weight": (head_dim, hidden), "query.weight": (head_dim, hidden),
        "candidate_mlp.weight": (head_dim, hidden), "candidate_mlp.bias": (head_dim,),
        "query_mlp.weight": (head_dim, hidden), "scalar.weight": (1, head_dim),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class CandidateHead:
    """`tensors` as in `head_shapes`, float32."""

    tensors: Mapping[str, torch.Tensor]

    def logits(self, candidates: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        """candidates [options, hidden], query [hidden], both float32 -> [options]."""
        t = self.tensors
        width = (candidates.shape[-1],)
        c = F.layer_norm(candidates, width, t["candidate_norm.weight"], t["candidate_norm.bias"], _EPS)
        q = F.layer_norm(query, width, t["query_norm.weight"], t["query_norm.bias"], _EPS)
        near = (c @ t["key.weight"].T) @ (t["query.weight"] @ q) / math.sqrt(t["key.weight"].shape[0])
        mixed = F.linear(c, t["candidate_mlp.weight"], t["candidate_mlp.bias"]) + t["query_mlp.weight"] @ q
        return near + F.gelu(mixed) @ t["scalar.weight"][0]

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors.values())
