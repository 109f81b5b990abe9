"""Which class describes the value at a path of a document."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from headway.router.config.document.document import Document
from headway.router.config.document.node import Node


def class_at(path: tuple[str | int, ...], root: type[Node] = Document) -> type[Node] | None:
    """The class of the mapping at `path`; None where no mapping with known keys stands. Older spellings of keys are followed."""
    kind: Any = root
    for part in path:
        kind = _below(kind, part)
        if kind is None:
            return None
    return next(_nodes(kind), None)


def _below(kind: Any, part: str | int) -> Any:
    for each in _alternatives(kind):
        if isinstance(each, type) and issubclass(each, Node):
            name = each.other_names.get(str(part), str(part))
            for field_name, field in each.model_fields.items():
                if name in (field_name, field.alias):
                    return field.annotation
        elif get_origin(each) is list and isinstance(part, int):
            return get_args(each)[0]
        elif get_origin(each) in (dict, Mapping) and isinstance(part, str):
            return get_args(each)[1]
    return None


def _nodes(kind: Any) -> Iterator[type[Node]]:
    for each in _alternatives(kind):
        if isinstance(each, type) and issubclass(each, Node):
            yield each


def _alternatives(kind: Any) -> Iterator[Any]:
    origin = get_origin(kind)
    if origin is Annotated:
        yield from _alternatives(get_args(kind)[0])
    elif origin in (Union, types.UnionType):
        for each in get_args(kind):
            yield from _alternatives(each)
    else:
        yield kind
