"""The span head of the Vela 2.0 decoders, float32: words against labels.

Words are layer-normed and centred over the words of the block; labels are the layer-normed means of their blocks plus the
embedding of their place, centred if there are several. `score = <K w, Q l> / sqrt(d) + v . GELU(M w + N l)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import torch
import torch.nn.functional as F

_EPS: Final = 1e-5
ROUTER_PREFIX: Final = "span2."
BROAD_PREFIX: Final = "span_broad."


def span_shapes(hidden: int, projected: int, slots: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the head's tensors. `o` is stored and never read."""
    return {
        "wn.weight": (hidden,), "wn.bias": (hidden,), "ln.weight": (hidden,), "ln.bias": (hidden,), "slot.weight": (slots, hidden),
        "K.weight": (projected, hidden), "Q.weight": (projected, hidden), "M.weight": (projected, hidden), "M.bias": (projected,),
        "N.weight": (projected, hidden), "v.weight": (1, projected), "o.weight": (1, hidden), "o.bias": (1,),
    }  # fmt: skip


class SpanHead:
    """`tensors` as in `span_shapes`."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]):
        self._t = {name: tensor for name, tensor in tensors.items() if not name.startswith("o.")}

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self._t.values())

    def logits(self, words: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """words [words, hidden], labels [labels, hidden] (means over their tokens), float32 -> [words, labels]."""
        t, width = self._t, (words.shape[1],)
        w = F.layer_norm(words, width, t["wn.weight"], t["wn.bias"], _EPS)
        w = w - w.mean(0, keepdim=True)
        places = torch.arange(len(labels)).clamp(max=t["slot.weight"].shape[0] - 1)
        at = F.layer_norm(labels, width, t["ln.weight"], t["ln.bias"], _EPS) + t["slot.weight"][places]
        if len(labels) > 1:
            at = at - at.mean(0, keepdim=True)
        near = (w @ t["K.weight"].T) @ (at @ t["Q.weight"].T).T / math.sqrt(t["K.weight"].shape[0])
        mixed = F.linear(w, t["M.weight"], t["M.bias"])[:, None] + (at @ t["N.weight"].T)[None]
        return near + (F.gelu(mixed) @ t["v.weight"].T)[..., 0]
