"""Items of one request: each has its rows and its answer, or fails alone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from headway.runtime.row import ItemFailure, Outcome, Row
from headway.runtime.tasks.input_usage import InputUsage


@dataclass(frozen=True, slots=True)
class ItemPlan:
    """`answer` makes the item's part of the body from the outcomes of its rows, which hold no failure. No rows: it needs no
    forward pass."""

    rows: tuple[Row, ...]
    usage: InputUsage
    answer: Callable[[Sequence[Outcome]], Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """An item that was read, and what came of it."""

    value: Any
    usage: InputUsage


Item: TypeAlias = ItemPlan | ItemFailure
Result: TypeAlias = Answered | ItemFailure


def run_items(items: Sequence[Item]) -> Generator[Sequence[Row], Sequence[Outcome], list[Result]]:
    """One round for all rows of all items; a failed row fails its item only."""
    rows = [row for item in items if isinstance(item, ItemPlan) for row in item.rows]
    outcomes: Sequence[Outcome] = (yield rows) if rows else ()
    results: list[Result] = []
    taken = 0
    for item in items:
        if isinstance(item, ItemFailure):
            results.append(item)
            continue
        own = outcomes[taken : taken + len(item.rows)]
        taken += len(item.rows)
        failure = next((outcome for outcome in own if isinstance(outcome, ItemFailure)), None)
        results.append(failure if failure is not None else Answered(item.answer(own), item.usage))
    return results


def failed_item(index: int, failure: ItemFailure) -> dict[str, Any]:
    """The entry of an item that has no answer."""
    entry: dict[str, Any] = {"index": index, "error": failure.code}
    if failure.message is not None:
        entry["message"] = failure.message
    return entry


def input_tokens(results: Sequence[Result]) -> int:
    """Tokens that were read for the answered items."""
    return sum(result.usage.processed for result in results if isinstance(result, Answered))
