"""From hidden states to log-probabilities of tokens, a slice of rows at a time: the logits of a long text would take gigabytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from headway.evaluation.scoring import Numbers

_SLICE_BYTES: Final = 32 << 20
Flags: TypeAlias = npt.NDArray[np.bool_]
HeadOf: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""[N, hidden] -> float32 [N, vocabulary]."""


@dataclass(frozen=True, slots=True)
class Head:
    """The output head of a model; only the first `known` ids are choices."""

    of: HeadOf
    known: int

    def log_probs(self, hidden: torch.Tensor, known: int | None = None) -> torch.Tensor:
        """[N, hidden] -> float64 [N, known]: a divergence of 1e-6 is lost in sums of float32."""
        return torch.log_softmax(self.of(hidden)[:, : known or self.known].double(), -1)

    def rows(self) -> int:
        """How many rows `log_probs` may take at once."""
        return max(1, _SLICE_BYTES // (8 * self.known))


@dataclass(frozen=True, slots=True)
class TokenComparison:
    """For each target: its log-probability by the measured model, and how that model's distribution differs from the baseline's:
    KL(baseline || measured) in nats, and whether both have the same first choice."""

    logprobs: Numbers
    divergence: Numbers
    agrees: Flags


@torch.inference_mode()
def token_logprobs(head: Head, hidden: torch.Tensor, targets: Sequence[int]) -> Numbers:
    """Of each target, in nats; `hidden` [targets, hidden]."""
    wanted = torch.tensor(targets, dtype=torch.int64)
    return _joined([_own(head.log_probs(rows), ids) for rows, ids in _slices(head.rows(), hidden, wanted)])


@torch.inference_mode()
def token_comparison(head: Head, hidden: torch.Tensor, base: Head, base_hidden: torch.Tensor, targets: Sequence[int]) -> TokenComparison:
    """The same positions of two models with the same tokens. Where one knows more ids, these count for neither."""
    known = min(head.known, base.known)
    wanted = torch.tensor(targets, dtype=torch.int64)
    logprobs, divergence, agrees = [], [], []
    for rows, base_rows, ids in _slices(min(head.rows(), base.rows()), hidden, base_hidden, wanted):
        ours, theirs = head.log_probs(rows, known), base.log_probs(base_rows, known)
        logprobs.append(_own(ours, ids))
        divergence.append(_divergence(theirs, ours))
        agrees.append(ours.argmax(-1) == theirs.argmax(-1))
    return TokenComparison(_joined(logprobs), _joined(divergence), _joined(agrees))


def _joined(parts: Sequence[torch.Tensor]) -> npt.NDArray[Any]:
    return torch.cat(list(parts)).numpy() if parts else np.empty(0)


def _divergence(base: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """sum p (log p - log q) for each row. What p holds for impossible counts nothing, whatever q holds it for."""
    terms = base.exp() * (base - other)
    return torch.where(base == float("-inf"), 0.0, terms).sum(-1)


def _own(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return table.gather(1, ids[:, None])[:, 0]


def _slices(count: int, *tensors: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
    return list(zip(*(torch.split(tensor, count) for tensor in tensors), strict=True)) if len(tensors[0]) else []
