"""Bytes that a loaded model holds, counted: every tensor that can be reached from it, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def held_bytes(model: Any) -> int:
    """Packed matrices count what they hold of their weight (their layout may add padding); views of one storage count once."""
    found: dict[int, int] = {}
    seen: set[int] = set()
    stack = [model]
    while stack:
        thing = stack.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, torch.Tensor):
            if thing.layout is torch.strided:
                storage = thing.untyped_storage()
                found[storage.data_ptr()] = storage.nbytes()
            else:
                found[id(thing)] = thing.numel() * thing.element_size()
        else:
            stack.extend(_parts(thing))
    return sum(found.values())


def _parts(thing: Any) -> Iterator[Any]:
    """What a module, one of our layers or a container refers to; nothing of other objects."""
    if isinstance(thing, dict):
        yield from thing.values()
    elif isinstance(thing, list | tuple | set):
        yield from thing
    elif isinstance(thing, torch.nn.Module) or (type(thing).__module__.startswith("headway.") and not isinstance(thing, type)):
        yield from getattr(thing, "__dict__", {}).values()
        for kind in type(thing).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            yield from (getattr(thing, name) for name in ((slots,) if isinstance(slots, str) else slots) if hasattr(thing, name))
