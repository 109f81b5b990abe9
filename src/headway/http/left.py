"""What is to be done when a client's connection is lost, without a task that waits for it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

EXTENSION = "headway.left"
ABORT = "headway.abort"


def leavers(scope: MutableMapping[str, Any]) -> list[Callable[[], object]]:
    """The calls that the protocol makes when the connection of `scope` is lost. Who adds one removes it when the answer is complete.

    Servers other than ours have none: then a list that nobody reads.
    """
    found: list[Callable[[], object]] = scope.get("extensions", {}).get(EXTENSION, [])
    return found


def abort_of(scope: MutableMapping[str, Any]) -> Callable[[], object]:
    """Ends the connection of `scope` at once, also while its client reads nothing of what was written. Servers other than ours cannot."""
    found: Callable[[], object] = scope.get("extensions", {}).get(ABORT, _nothing)
    return found


def _nothing() -> None:
    """There is no connection to end."""
