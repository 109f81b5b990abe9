"""The files that a configuration names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from headway.router.config.document.document import Document

_ENDINGS = ("_file", "path", "manifest")


def referenced_files(document: Document, folder: Path) -> list[Path]:
    """Each that exists, relative names read from `folder`, in order and without repetition."""
    found: dict[Path, None] = {}
    for text in _named(document):
        path = folder / Path(text).expanduser()
        if path.is_file():
            found[path] = None
    return list(found)


def _named(node: object) -> Iterator[str]:
    if isinstance(node, BaseModel):
        for name in type(node).model_fields:
            value = getattr(node, name)
            if isinstance(value, str) and name.endswith(_ENDINGS):
                yield value
            else:
                yield from _named(value)
    elif isinstance(node, dict):
        for value in node.values():
            yield from _named(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _named(value)
