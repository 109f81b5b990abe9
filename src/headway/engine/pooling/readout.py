"""Readout: what is taken of the hidden states of one prompt while its chunks are computed."""

from __future__ import annotations

import abc
from typing import Final

import torch

from headway.engine.pooling.class_head import ClassHead
from headway.errors import StepError

_EPSILON: Final = 1e-12  # of a norm, as in torch.nn.functional.normalize
_NOT_FINITE: Final = "the model computed numbers that are not finite"


class Readout(abc.ABC):
    """The state of one request. A chunk may come twice, and after a preemption the prompt begins anew: what comes later
    replaces what came before.

    `all_rows`: every position is read, so none may be taken from the prefix cache; else the last one only. `reads_logits`: rows are
    logits [1, vocabulary] of the last position instead of hidden states. `result` is there once the last chunk was read: float32.
    """

    all_rows: bool = False
    reads_logits: bool = False
    result: torch.Tensor | None = None

    def take(self, start: int, rows: torch.Tensor, is_last: bool) -> None:
        """`rows` [N, hidden]: of the chunk at `start`, all of them or the last. On the CPU; they live until the next step. Raises StepError."""
        self._keep(start, rows)
        if is_last:
            result = self._finish(rows[-1])
            if not bool(torch.isfinite(result).all()):
                raise StepError(_NOT_FINITE, reason="invalid_model_output")
            self.result = result

    def _keep(self, start: int, rows: torch.Tensor) -> None:  # noqa: B027 - most readouts need the last row only
        """What is remembered of a chunk."""

    @abc.abstractmethod
    def _finish(self, last: torch.Tensor) -> torch.Tensor:
        """From the last row [hidden], and what was kept."""


class _Vectors(Readout):
    """Cut first, then brought to unit length: a part of a unit vector is shorter than one."""

    def __init__(self, dimensions: int | None, unit_length: bool):
        self._dimensions = dimensions
        self._unit_length = unit_length

    def _shaped(self, vectors: torch.Tensor) -> torch.Tensor:
        cut = vectors[..., : self._dimensions].float()
        return cut / cut.norm(dim=-1, keepdim=True).clamp_min(_EPSILON) if self._unit_length else cut.clone()


class LastVector(_Vectors):
    """The hidden state of the last token, which has seen all others. Result [dimensions]."""

    def _finish(self, last: torch.Tensor) -> torch.Tensor:
        return self._shaped(last)


class MeanVector(_Vectors):
    """The mean over all tokens. Result [dimensions]."""

    all_rows = True

    def __init__(self, dimensions: int | None, unit_length: bool):
        super().__init__(dimensions, unit_length)
        self._sums: dict[int, tuple[torch.Tensor, int]] = {}  # by the chunk's start: sum over its rows, and how many

    def _keep(self, start: int, rows: torch.Tensor) -> None:
        if start == 0:
            self._sums.clear()
        self._sums[start] = rows.double().sum(0), len(rows)

    def _finish(self, last: torch.Tensor) -> torch.Tensor:
        total = torch.stack([part for part, _ in self._sums.values()]).sum(0)
        return self._shaped(total / sum(count for _, count in self._sums.values()))


class TokenVectors(_Vectors):
    """The hidden state of every token. Result [tokens, dimensions]."""

    all_rows = True

    def __init__(self, dimensions: int | None, unit_length: bool):
        super().__init__(dimensions, unit_length)
        self._rows: dict[int, torch.Tensor] = {}

    def _keep(self, start: int, rows: torch.Tensor) -> None:
        if start == 0:
            self._rows.clear()
        self._rows[start] = self._shaped(rows)

    def _finish(self, last: torch.Tensor) -> torch.Tensor:
        return torch.cat([self._rows[start] for start in sorted(self._rows)])


class Classes(Readout):
    """The model's classification head on the last token. Result [classes]: probabilities, or logits."""

    def __init__(self, head: ClassHead, probabilities: bool):
        self._head = head
        self._probabilities = probabilities

    def _finish(self, last: torch.Tensor) -> torch.Tensor:
        found = self._head.logits(last)
        return self._head.probabilities(found) if self._probabilities else found


class LabelLogits(Readout):
    """Some tokens as the next one. Result [labels + 2]: their logits, the logarithm of the sum of exp over the vocabulary, and the
    largest logit of the vocabulary."""

    reads_logits = True

    def __init__(self, token_ids: tuple[int, ...]):
        self._token_ids = torch.tensor(token_ids)

    def _finish(self, last: torch.Tensor) -> torch.Tensor:
        return torch.cat([last[self._token_ids], last.logsumexp(0, keepdim=True), last.amax(0, keepdim=True)])
