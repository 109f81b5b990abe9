"""What answers say about how much of an input was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.runtime.row import ItemFailure


@dataclass(frozen=True, slots=True)
class InputUsage:
    """In tokens of the model, special ones of one sequence included. `lower_bound`: the text was not read to its end, and
    has at least `tokens`. `windows`: how many forward passes read it, None when it was not cut into windows."""

    tokens: int
    processed: int
    lower_bound: bool = False
    windows: int | None = None

    @property
    def truncated(self) -> bool:
        return self.processed < self.tokens or self.lower_bound

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"tokens": self.tokens, "processed_tokens": self.processed, "truncated": self.truncated}
        if self.windows is not None:
            body["windows"] = self.windows
        if self.lower_bound:
            body["tokens_lower_bound"] = True
        return body


def too_long(tokens: int, allowed: int, at_least: bool, what: str = "the input") -> ItemFailure:
    """The failure of an item over the limit of one forward pass."""
    given = f"at least {tokens}" if at_least else str(tokens)
    return ItemFailure(
        "max_length_exceeded",
        f"{what} has {given} tokens with its special tokens, the limit is {allowed}; nothing was read",
    )  # fmt: skip


def over_budget(tokens: int, allowed: int, at_least: bool, what: str = "the input") -> ItemFailure:
    """The failure of an item that has more tokens than all windows together may read."""
    given = f"at least {tokens}" if at_least else str(tokens)
    return ItemFailure(
        "scan_budget_exceeded",
        f"{what} has {given} tokens with its special tokens, the scan budget is {allowed}; nothing was read",
    )  # fmt: skip
