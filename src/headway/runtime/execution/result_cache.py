"""ResultCache: what forward passes of one model have given for which rows, the least recently used one leaves first."""

from __future__ import annotations

from collections import OrderedDict

from headway.runtime.execution.row_key import RowKey
from headway.runtime.row import ItemFailure, Outcome


class ResultCache:
    """Raw readouts (a pooled vector of full width, logits, ...), so that one forward serves every way of asking.

    Values are shared and must not be changed. Failures and None are not kept. Not locked: its scheduler is.
    """

    def __init__(self, entries: int):
        """`entries` 0: keeps nothing."""
        self._most = entries
        self._found: OrderedDict[RowKey, Outcome] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    @property
    def is_on(self) -> bool:
        return self._most > 0

    def get(self, key: RowKey) -> Outcome | None:
        """None when it is not there."""
        outcome = self._found.get(key)
        if outcome is not None:
            self._found.move_to_end(key)
        return outcome

    def put(self, key: RowKey, outcome: Outcome) -> None:
        if self._most == 0 or outcome is None or isinstance(outcome, ItemFailure):
            return
        self._found[key] = outcome
        self._found.move_to_end(key)
        if len(self._found) > self._most:
            self._found.popitem(last=False)
