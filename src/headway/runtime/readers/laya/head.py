"""The decision head: type embedding, pre-norm transformer layers without positions, a scorer at the option markers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

_EPS = 1e-5
_HEAD_WIDTH = 64  # hidden / 64 attention heads
ACT_FEATURES = 4
ACT_HIDDEN = 256
MOST_OPTIONS = 255.0


def head_shapes(hidden: int, layers: int, actions: int | None) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the head's tensors; `actions` None: without the act head."""
    shapes: dict[str, tuple[int, ...]] = {"type_emb.weight": (3, hidden)}
    for layer in range(layers):
        for name, shape in (
            ("self_attn.in_proj_weight", (3 * hidden, hidden)), ("self_attn.in_proj_bias", (3 * hidden,)),
            ("self_attn.out_proj.weight", (hidden, hidden)), ("self_attn.out_proj.bias", (hidden,)),
            ("linear1.weight", (4 * hidden, hidden)), ("linear1.bias", (4 * hidden,)),
            ("linear2.weight", (hidden, 4 * hidden)), ("linear2.bias", (hidden,)),
            ("norm1.weight", (hidden,)), ("norm1.bias", (hidden,)), ("norm2.weight", (hidden,)), ("norm2.bias", (hidden,)),
        ):  # fmt: skip
            shapes[f"head.layers.{layer}.{name}"] = shape
    shapes |= {
        "scorer.0.weight": (hidden,), "scorer.0.bias": (hidden,), "scorer.1.weight": (hidden, hidden), "scorer.1.bias": (hidden,),
        "scorer.3.weight": (1, hidden), "scorer.3.bias": (1,),
    }  # fmt: skip
    if actions is not None:
        shapes |= {
            "act_head.0.weight": (ACT_HIDDEN, hidden + ACT_FEATURES), "act_head.0.bias": (ACT_HIDDEN,),
            "act_head.2.weight": (actions, ACT_HIDDEN), "act_head.2.bias": (actions,),
        }  # fmt: skip
    return shapes


@dataclass(frozen=True, slots=True)
class Marked:
    """One row of the batch: rows [start, end) of the hidden states, its question type, the markers from `start` on."""

    start: int
    end: int
    kind: int
    markers: tuple[int, ...]


class MarkerHead:
    """`tensors` as in `head_shapes`, float32. `attention_heads` None: one for each 64 of the width."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], layers: int, attention_heads: int | None = None):
        self._t = tensors
        self._layers = layers
        self._heads = attention_heads

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self._t.values())

    def read(self, hidden: torch.Tensor, rows: Sequence[Marked]) -> list[npt.NDArray[np.float32]]:
        """hidden [T, width], final norm applied -> for each row the logits of its options, then the logits of the actions
        if there is an act head."""
        kinds = torch.tensor([row.kind for row in rows])
        lengths = torch.tensor([row.end - row.start for row in rows])
        x = hidden.float() + self._t["type_emb.weight"][kinds].repeat_interleave(lengths, 0)
        # Only the first token and the markers are read in the end, so the last layer computes no others.
        wanted = torch.tensor([row.start + at for row in rows for at in (0, *row.markers)])
        for layer in range(self._layers):
            x = self._layer(layer, x, rows, wanted if layer == self._layers - 1 else None)
        if self._layers == 0:
            x = x[wanted]
        scores = self._score(x)
        read: list[npt.NDArray[np.float32]] = []
        place = 0
        for row in rows:
            options = scores[place + 1 : place + 1 + len(row.markers)]
            read.append(torch.cat((options, self._act(x[place], options))).numpy())
            place += 1 + len(row.markers)
        return read

    def _layer(self, layer: int, x: torch.Tensor, rows: Sequence[Marked], wanted: torch.Tensor | None) -> torch.Tensor:
        """norm, attention, add; norm, ReLU MLP, add. With `wanted`, of those tokens alone."""
        t = {name: self._t[f"head.layers.{layer}.{name}"] for name in _LAYER_TENSORS}
        width = x.shape[1]
        heads = self._heads or max(1, width // _HEAD_WIDTH)
        normed = F.layer_norm(x, (width,), t["norm1.weight"], t["norm1.bias"], _EPS)
        keep = x if wanted is None else x[wanted]
        weights, biases = t["self_attn.in_proj_weight"], t["self_attn.in_proj_bias"]
        q = F.linear(normed if wanted is None else normed[wanted], weights[:width], biases[:width])
        k, v = F.linear(normed, weights[width:], biases[width:]).chunk(2, 1)
        attended = torch.cat([
            _attention(q[a:b], k[row.start : row.end], v[row.start : row.end], heads)
            for row, (a, b) in zip(rows, _query_ranges(rows, wanted is not None), strict=True)
        ])  # fmt: skip
        x = keep + F.linear(attended, t["self_attn.out_proj.weight"], t["self_attn.out_proj.bias"])
        normed = F.layer_norm(x, (width,), t["norm2.weight"], t["norm2.bias"], _EPS)
        grown = F.relu(F.linear(normed, t["linear1.weight"], t["linear1.bias"]))
        return x + F.linear(grown, t["linear2.weight"], t["linear2.bias"])

    def _score(self, x: torch.Tensor) -> torch.Tensor:
        t = self._t
        normed = F.layer_norm(x, x.shape[1:], t["scorer.0.weight"], t["scorer.0.bias"], _EPS)
        return F.linear(F.gelu(F.linear(normed, t["scorer.1.weight"], t["scorer.1.bias"])), t["scorer.3.weight"], t["scorer.3.bias"])[:, 0]

    def _act(self, first: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Logits of the actions, from the first token and the shape of the distribution before any temperature."""
        t = self._t
        if "act_head.0.weight" not in t:
            return scores[:0]
        p = torch.softmax(scores, 0)
        count = float(max(2, len(p)))
        entropy = -(p * torch.log(p.clamp_min(1e-9))).sum() / math.log(count)
        top = torch.cat((p, p.new_zeros(1))).topk(2).values
        shape = torch.stack((top[0], top[0] - top[1], entropy, p.new_tensor(count / MOST_OPTIONS)))
        hidden = F.gelu(F.linear(torch.cat((first, shape)), t["act_head.0.weight"], t["act_head.0.bias"]))
        return F.linear(hidden, t["act_head.2.weight"], t["act_head.2.bias"])


_LAYER_TENSORS = tuple(name.removeprefix("head.layers.0.") for name in head_shapes(1, 1, None) if name.startswith("head."))


def _query_ranges(rows: Sequence[Marked], markers_only: bool) -> list[tuple[int, int]]:
    """Where each row's queries lie: its tokens, or its first token and markers, row after row."""
    if not markers_only:
        return [(row.start, row.end) for row in rows]
    ranges, place = [], 0
    for row in rows:
        ranges.append((place, place + 1 + len(row.markers)))
        place = ranges[-1][1]
    return ranges


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int) -> torch.Tensor:
    """[queries, width] over [tokens, width]: every query sees every token of its row."""
    query, key, value = (x.view(len(x), heads, -1).transpose(0, 1)[None] for x in (q, k, v))
    return F.scaled_dot_product_attention(query, key, value)[0].transpose(0, 1).flatten(1)
