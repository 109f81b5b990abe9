"""YAML from outside: never more than can be walked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

DEPTH_AT_MOST: Final = 64
NODES_AT_MOST: Final = 500_000


def parsed(text: str | bytes) -> Any:
    """The value of a YAML (or JSON) text. Raises ValueError on anything else, and beyond the limits of depth and size."""
    import yaml  # takes 15 ms, and most logs come without any

    try:
        tree = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if not _is_bounded(tree):
        raise ValueError(f"deeper than {DEPTH_AT_MOST} levels, or more than {NODES_AT_MOST} members with its aliases written out")
    return tree


def _is_bounded(tree: Any) -> bool:
    """Aliases can make a small file endless; they are counted as often as they are used."""
    ahead: list[tuple[Any, int]] = [(tree, 0)]
    nodes = 0
    while ahead:
        value, depth = ahead.pop()
        nodes += 1
        if depth > DEPTH_AT_MOST or nodes > NODES_AT_MOST:
            return False
        if isinstance(value, Mapping):
            ahead += [(member, depth + 1) for member in value.values()]
        elif isinstance(value, (list, tuple, set)):
            ahead += [(member, depth + 1) for member in value]
    return True
