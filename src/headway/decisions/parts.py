"""`over`: the parts of a state that a question is about."""

from __future__ import annotations

from typing import Any

from headway.decisions.question import Content
from headway.decisions.row import ItemFailure


def narrowed(state: Content, over: Any) -> Content | ItemFailure:
    """One key or index -> that value; a list of them -> an object or array of those alone, in the order of the list."""
    if isinstance(over, list):
        missing = [name for name in over if not _has(state, name)]
        if missing:
            return _absent(missing[0])
        return {name: state[name] for name in over} if isinstance(state, dict) else [state[index] for index in over]
    return state[over] if _has(state, over) else _absent(over)


def _has(state: Content, name: Any) -> bool:
    if isinstance(state, dict):
        return isinstance(name, str) and name in state
    return isinstance(state, list) and isinstance(name, int) and name < len(state)


def _absent(name: Any) -> ItemFailure:
    return ItemFailure("invalid_question", f"over names {str(name)[:80]!r}, which is no part of the state")
