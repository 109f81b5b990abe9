"""Tree: a configuration that is being migrated, with its comments, and the list of what was done."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ruamel.yaml.comments import CommentedMap

from headway.router.config.diagnostics import Path, shown

Mapping = MutableMapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """Something that was done, or (`open`) that a person has to do. `path` is where it stands in the result, or stood."""

    kind: Literal["done", "open"]
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(slots=True)
class Tree:
    """`root` is the document as ruamel.yaml reads it; every change goes through a method that keeps comments and notes the step."""

    root: Mapping
    steps: list[Step] = field(default_factory=list)

    def mapping(self, *path: str) -> Mapping | None:
        """The mapping at `path`, None when none is there."""
        place: Any = self.root
        for key in path:
            place = place.get(key) if isinstance(place, MutableMapping) else None
        return place if isinstance(place, MutableMapping) else None

    def made(self, *path: str) -> Mapping:
        """The mapping at `path`, made when it is not there."""
        place = self.root
        for key in path:
            if not isinstance(place.get(key), MutableMapping):
                place[key] = CommentedMap()
            place = place[key]
        return place

    def done(self, path: Path | str, message: str) -> None:
        self._note("done", path, message)

    def open(self, path: Path | str, message: str) -> None:
        """Nothing was changed here; a person has to."""
        self._note("open", path, message)

    def _note(self, kind: Literal["done", "open"], path: Path | str, message: str) -> None:
        step = Step(kind, path if isinstance(path, str) else shown(path), message)
        if step not in self.steps:
            self.steps.append(step)

    def drop(self, place: Mapping | None, key: str, path: Path, why: str) -> Any:
        """Remove a key; its value, or None when it was not there."""
        if place is None or key not in place:
            return None
        value = place[key]
        remove(place, key)
        self.done((*path, key), f"removed: {why}")
        return value

    def rename(self, place: Mapping | None, old: str, new: str, path: Path) -> None:
        """A key gets a new name where it stands. When the new one is there already, the old one goes."""
        if place is None or old not in place:
            return
        if new in place:
            remove(place, old)
            self.done((*path, old), f"removed: {new} is there already")
            return
        rename(place, old, new)
        self.done((*path, old), f"is called {new} now")

    def move(self, place: Mapping | None, key: str, path: Path, target: Path) -> None:
        """A key with its value goes to `target`, whose last part is its new name. What is there already stays."""
        if place is None or key not in place:
            return
        value = place[key]
        keys = [str(part) for part in target]
        above = self.made(*keys[:-1])
        comments = take_comments(place, key)
        remove(place, key)
        if keys[-1] not in above:
            above[keys[-1]] = value
            give_comments(above, keys[-1], comments)
        elif isinstance(value, MutableMapping) and isinstance(above[keys[-1]], MutableMapping):
            for name, each in value.items():
                above[keys[-1]].setdefault(name, each)
        self.done((*path, key), f"moved to {shown(target)}")

    def routings(self) -> Iterator[tuple[Path, Mapping]]:
        """The top-level routing and that of each recipe."""
        top = self.mapping("routing")
        if top is not None:
            yield ("routing",), top
        for index, recipe in enumerate(items(self.root.get("recipes"))):
            routing = recipe.get("routing")
            if isinstance(routing, MutableMapping):
                yield ("recipes", index, "routing"), routing

    def decisions(self) -> Iterator[tuple[Path, Mapping]]:
        for path, routing in self.routings():
            for index, decision in enumerate(items(routing.get("decisions"))):
                yield (*path, "decisions", index), decision

    def rules(self, collection: str) -> Iterator[tuple[Path, Mapping]]:
        """The rules of a kind of signal."""
        for path, routing in self.routings():
            signals = routing.get("signals")
            for index, rule in enumerate(items(signals.get(collection)) if isinstance(signals, MutableMapping) else ()):
                yield (*path, "signals", collection, index), rule


def items(value: Any) -> list[Mapping]:
    """The mappings of a list; none for anything else."""
    return [item for item in value if isinstance(item, MutableMapping)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """The strings of a list; none for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def mapping_of(value: Any, key: Any) -> Mapping | None:
    """The mapping that `value`, a mapping of mappings, has under `key`."""
    found = value.get(key) if isinstance(value, MutableMapping) and isinstance(key, str) else None
    return found if isinstance(found, MutableMapping) else None


def remove(place: Mapping, key: str) -> None:
    """A key that only an anchor brings (`<<`) cannot be removed here; it goes where the anchor stands."""
    try:
        del place[key]
    except KeyError:
        return


def rename(place: Mapping, old: str, new: str) -> None:
    value, comments = place[old], take_comments(place, old)
    position = list(place).index(old)
    remove(place, old)
    if isinstance(place, CommentedMap):
        place.insert(position, new, value)
    else:
        place[new] = value
    give_comments(place, new, comments)


def take_comments(place: Mapping, key: str) -> Any:
    return place.ca.items.pop(key, None) if isinstance(place, CommentedMap) else None


def give_comments(place: Mapping, key: str, comments: Any) -> None:
    if comments is not None and isinstance(place, CommentedMap):
        place.ca.items[key] = comments
