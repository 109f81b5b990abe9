"""What differs between two configurations, and which differences need a new start of the process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from headway.router.config.diagnostics import shown
from headway.router.config.document.document import Document
from headway.router.config.document.listeners import Listener
from headway.router.config.normal_form import normal_form

_BOUND = ("address", "port", "timeout", "tls")
"""Parts of a listener that hold from its start on; keys, models and identities are replaced in place."""


class Change(NamedTuple):
    """`path` as it is shown to people; values are left out, because they may be secrets."""

    kind: Literal["added", "removed", "changed"]
    path: str


def changes(before: Document, after: Document) -> list[Change]:
    return list(_differences(normal_form(before), normal_form(after), ()))


def _differences(one: Any, other: Any, path: tuple[str | int, ...]) -> Iterator[Change]:
    if one == other:
        return
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        keys: list[Any] = [*one, *(key for key in other if key not in one)]
        below = [(key, one.get(key, _ABSENT), other.get(key, _ABSENT)) for key in keys]
    elif isinstance(one, list) and isinstance(other, list):
        longest = range(max(len(one), len(other)))
        below = [(at, one[at] if at < len(one) else _ABSENT, other[at] if at < len(other) else _ABSENT) for at in longest]
    else:
        yield Change("changed", shown(path))
        return
    for key, old, new in below:
        if old is _ABSENT or new is _ABSENT:
            yield Change("added" if old is _ABSENT else "removed", shown((*path, key)))
        else:
            yield from _differences(old, new, (*path, key))


_ABSENT = object()


def restart_required(before: Document, after: Document) -> list[str]:
    """Why the running process cannot take the change; empty when it can."""
    old, new = _listeners(before), _listeners(after)
    found = [f'listener "{name}" is removed' for name in old if name not in new]
    found += [f'listener "{name}" is added' for name in new if name not in old]
    for name in old.keys() & new.keys():
        found += [f'{part} of listener "{name}" changes' for part in _BOUND if getattr(old[name], part) != getattr(new[name], part)]
    return sorted(found)


def _listeners(document: Document) -> Mapping[str, Listener]:
    return {listener.name: listener for listener in document.listeners or ()}
