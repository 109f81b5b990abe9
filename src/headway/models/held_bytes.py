"""Memory that a loaded model holds: every tensor that can be reached from it, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def held_bytes(model: Any) -> int:
    """Packed matrices count what they hold of their weight (their layout may add padding); views of one storage count once."""
    found: dict[int, int] = {}
    for tensor in _tensors(model):
        if tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        else:
            found[id(tensor)] = tensor.numel() * tensor.element_size()
    return sum(found.values())


def held_ranges(model: Any) -> list[tuple[int, int]]:
    """(address, bytes) of the memory of each tensor, that of packed matrices included; views of one storage come once."""
    found: dict[int, int] = {}
    for tensor in _tensors(model):
        if tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        elif tensor.is_mkldnn:
            found[torch.ops.mkldnn.data_ptr(tensor)] = torch.ops.mkldnn._nbytes(tensor)
    return sorted(found.items())


def _tensors(model: Any) -> Iterator[torch.Tensor]:
    seen: set[int] = set()
    stack = [model]
    while stack:
        thing = stack.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, torch.Tensor):
            yield thing
        else:
            stack.extend(_parts(thing))


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
