"""What goes through a forward pass of a task model, and what comes back."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

ItemCode: TypeAlias = Literal[
    "invalid_question", "invalid_input", "max_length_exceeded", "scan_budget_exceeded", "invalid_model_output",
    "deadline_exceeded", "unavailable",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence for one readout; equal rows have equal values, so they are computed once and may be cached.

    `token_ids` hold the special tokens. `readout` names the part of the model that reads the hidden states ("domain",
    "embed", "decide", ...); `detail` is what it must know besides (exit layer, marker positions, ...). `payload` is
    bulk input that is no token (an image); `detail` then holds its digest. `cost` is in tokens.
    """

    token_ids: tuple[int, ...]
    readout: str
    detail: Hashable = None
    payload: Any = field(default=None, compare=False, repr=False)
    extra_cost: int = 0

    @property
    def cost(self) -> int:
        return len(self.token_ids) + self.extra_cost


@dataclass(frozen=True, slots=True)
class ItemFailure:
    """Why one item has no answer; its siblings go on."""

    code: ItemCode
    message: str | None = None


Outcome: TypeAlias = Any  # what the readout returns (mostly a float32 numpy array), or an ItemFailure
