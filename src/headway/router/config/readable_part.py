"""The part of a wrong document that can be read, so that one run reports what is wrong with it across fields too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

from pydantic import ValidationError

from headway.router.config.diagnostics import Diagnostic, Path, quoted
from headway.router.config.document.document import Document
from headway.router.config.schema_errors import schema_diagnostics

_ROUNDS = 8
_HARMLESS = frozenset({"unknown_key", "field_removed"})
"""Without these keys the rest means what it meant."""


@dataclass(frozen=True, slots=True)
class ReadablePart:
    """`document` lacks the places `left_out`. `kept` has, for each list that lost items, the old indexes of those that stayed."""

    document: Document
    left_out: tuple[Path, ...]
    kept: Mapping[Path, Sequence[int]]
    names: frozenset[str]

    def original(self, path: Path) -> Path:
        """Where in the whole document the place is that `path` names in this one."""
        found: Path = ()
        for part in path:
            found += (self.kept[found][part],) if isinstance(part, int) and found in self.kept else (part,)
        return found

    def told(self, diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
        """Those that are not about what was left out, with their places in the whole document."""
        for each in diagnostics:
            moved = replace(each, path=self.original(each.path))
            about = any(_related(_owner(moved.path), _owner(gone)) for gone in self.left_out)
            if not about and not self.names & quoted(each.message):
                yield moved


def readable_part(data: Mapping[str, Any], diagnostics: Sequence[Diagnostic], folder: File | None = None) -> ReadablePart | None:
    """`folder` is where relative file names begin. None when too much would have to be left out."""
    bad = {diagnostic.path for diagnostic in diagnostics}
    harmless = {diagnostic.path for diagnostic in diagnostics if diagnostic.reason in _HARMLESS}
    for _ in range(_ROUNDS):
        kept: dict[Path, list[int]] = {}
        dropped: list[Any] = []
        pruned = _pruned(data, (), _removable(bad, data), kept, dropped)
        pruned["version"] = "v0.3"
        try:
            document = Document.of(pruned, folder)
        except ValidationError as error:
            before = len(bad)
            part = ReadablePart(Document(version="v0.3"), (), kept, frozenset())
            for each in schema_diagnostics(error, pruned):
                place = part.original(each.path)
                bad.add(place[:-1] if place in bad else place)  # what is required has gone, so the whole of it goes
            if len(bad) == before:
                return None
            continue
        left_out = tuple(path for path in bad - harmless if path != ("version",))
        return ReadablePart(document, left_out, kept, frozenset(_names(dropped)))
    return None


def _removable(bad: Iterable[Path], data: Mapping[str, Any]) -> frozenset[Path]:
    """What has to go: the place itself, or what it is missing from."""
    places = set()
    for path in bad:
        at: Path = ()
        place: Any = data
        for part in path:
            inside = part in place if isinstance(place, Mapping) else isinstance(place, list) and isinstance(part, int) and part < len(place)
            if not inside:
                break
            place, at = place[part], (*at, part)
        places.add(at)
    return frozenset(places - {()})


def _pruned(value: Any, path: Path, bad: frozenset[Path], kept: dict[Path, list[int]], dropped: list[Any]) -> Any:
    if isinstance(value, Mapping):
        found = {}
        for key, below in value.items():
            if (*path, key) in bad:
                dropped.append(below)
            else:
                found[key] = _pruned(below, (*path, key), bad, kept, dropped)
        return found
    if isinstance(value, list):
        stay = [index for index in range(len(value)) if (*path, index) not in bad]
        dropped += [value[index] for index in range(len(value)) if index not in stay]
        if len(stay) < len(value):
            kept[path] = stay
        return [_pruned(value[index], (*path, index), bad, kept, dropped) for index in stay]
    return value


def _names(values: Iterable[Any]) -> Iterator[str]:
    """Every name that something in `values` has: what refers to it is not wrong."""
    for value in values:
        if isinstance(value, Mapping):
            if isinstance(value.get("name"), str):
                yield value["name"]
            yield from _names(value.values())
        elif isinstance(value, list):
            yield from _names(value)


def _owner(path: Path) -> Path:
    """The item of a list that `path` lies in, else the mapping."""
    last = max((at for at, part in enumerate(path) if isinstance(part, int)), default=None)
    return path[: last + 1] if last is not None else path[:-1] or path


def _related(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
