"""The files that a configuration names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from headway.router.config.document.document import Document

_ENDINGS = ("_file", "path", "manifest")


def referenced_files(document: Document) -> list[Path]:
    """Each that exists, in order and without repetition."""
    found: dict[Path, None] = {}
    for text in _named(document):
        path = document.place(text)
        if path.is_file():
            found[path] = None
    return list(found)


def _named(node: object) -> Iterator[str]:
    """Those of plugins stand in plain mappings: their settings have no class yet."""
    if isinstance(node, BaseModel):
        node = {name: getattr(node, name) for name in type(node).model_fields}
    if isinstance(node, Mapping):
        for name, value in node.items():
            if isinstance(value, str) and name.endswith(_ENDINGS):
                yield value
            else:
                yield from _named(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _named(value)
