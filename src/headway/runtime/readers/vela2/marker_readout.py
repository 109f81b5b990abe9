"""The marker head of the Vela 2.0 encoder, float32: options against the parts they are about, words against labels.

Options: `u = unit(Wo LN(h[O]) + Wq LN(h[Q]))`, `v = unit(Wp LN(mean h[parts]))`; logit `u . v / tau`, plus `MLP(h[O])`.
Words: `unit(Wt LN(h[word])) . unit(We LN(h[E])) / tau_span`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from headway.runtime.readers.vela2.sequence import Marks

READOUTS: Final = ("cosine", "mlp", "both")
_EPS: Final = 1e-5


@dataclass(frozen=True, slots=True)
class MarkerLogits:
    """`options`: for each question its options, "none of these" last. `words` [words, labels]."""

    options: tuple[npt.NDArray[np.float32], ...]
    words: npt.NDArray[np.float32]

    @property
    def are_finite(self) -> bool:
        return all(np.isfinite(each).all() for each in (*self.options, self.words))


def readout_shapes(hidden: int, projected: int, readout: str) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the head's tensors."""
    shapes: dict[str, tuple[int, ...]] = {"norm.weight": (hidden,), "norm.bias": (hidden,), "log_tau": (), "log_tau_span": ()}
    for name in ("w_o", "w_q", "w_p", "w_t", "w_e"):
        shapes |= {f"{name}.weight": (projected, hidden), f"{name}.bias": (projected,)}
    if readout != "cosine":
        shapes |= {
            "cls_mlp.0.weight": (2 * hidden, hidden), "cls_mlp.0.bias": (2 * hidden,), "cls_mlp.3.weight": (1, 2 * hidden), "cls_mlp.3.bias": (1,),
        }  # fmt: skip
    return shapes


class MarkerReadout:
    """`tensors` as in `readout_shapes`."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], readout: Literal["cosine", "mlp", "both"]):
        self._t = tensors
        self._readout = readout

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self._t.values())

    def read(self, hidden: torch.Tensor, marks: Marks) -> MarkerLogits:
        """hidden [tokens, width] of one row, float32."""
        options = tuple(self._options(hidden, each.query, each.options, each.start, each.end) for each in marks.asked)
        words = self._unit(hidden[list(marks.words)], "w_t") @ self._unit(hidden[list(marks.labels)], "w_e").T
        return MarkerLogits(options, (words / self._t["log_tau_span"].exp()).numpy())

    def _options(self, hidden: torch.Tensor, query: int, options: tuple[int, ...], start: int, end: int) -> npt.NDArray[np.float32]:
        states = hidden[list(options)]
        logits = torch.zeros(len(options))
        if self._readout != "mlp":
            about = self._unit(hidden[start:end].mean(0), "w_p")
            asked = F.normalize(self._linear(states, "w_o") + self._linear(hidden[query], "w_q"), dim=-1)
            logits = logits + asked @ about / self._t["log_tau"].exp()
        if self._readout != "cosine":
            t = self._t
            grown = F.relu(F.linear(states, t["cls_mlp.0.weight"], t["cls_mlp.0.bias"]))
            logits = logits + F.linear(grown, t["cls_mlp.3.weight"], t["cls_mlp.3.bias"])[:, 0]
        return logits.numpy()

    def _linear(self, states: torch.Tensor, name: str) -> torch.Tensor:
        normed = F.layer_norm(states, states.shape[-1:], self._t["norm.weight"], self._t["norm.bias"], _EPS)
        return F.linear(normed, self._t[f"{name}.weight"], self._t[f"{name}.bias"])

    def _unit(self, states: torch.Tensor, name: str) -> torch.Tensor:
        return F.normalize(self._linear(states, name), dim=-1)
