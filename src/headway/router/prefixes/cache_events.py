"""Events of a KV cache as engines publish them, read into records. Engines differ in the shape, not in the content:

vLLM and SGLang of different versions write a batch as [ts, events, rank] or as a map, and an event as [name, field, ...] or as a map whose
"type" is its name. Hashes are numbers or bytes. Fields that are not known are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from headway.errors import HeadwayError

Hash = int | bytes


class EventFormatError(HeadwayError):
    """Bytes that are no batch of events of a KV cache."""

    reason = "kv_events_format"


@dataclass(frozen=True, slots=True)
class Stored:
    """Consecutive blocks of one chain, `block_size` tokens each. `parent` None: they begin a prompt. `group` counts kinds of layers."""

    hashes: Sequence[Hash]
    parent: Hash | None
    tokens: Sequence[int]
    block_size: int
    group: int = 0


@dataclass(frozen=True, slots=True)
class Removed:
    hashes: Sequence[Hash]
    group: int = 0


@dataclass(frozen=True, slots=True)
class Cleared:
    """Nothing is held any more."""


CacheEvent = Stored | Removed | Cleared

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "BlockStored": (
        "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys", "group_idx",
    ),
    "BlockRemoved": ("block_hashes", "medium", "group_idx"),
    "AllBlocksCleared": (),
}  # fmt: skip
_FIRST_TIER: Final = (None, "GPU", "gpu")  # what attention reads; copies elsewhere are another matter
_LARGEST_BLOCK: Final = 1 << 16
_LARGEST_TOKEN: Final = 1 << 32


def read_batch(payload: bytes) -> list[CacheEvent]:
    """The events that say something about prompts of plain text: blocks of adapters, of salted or other special prompts, and copies outside
    of the first tier are left out. Raises EventFormatError."""
    try:
        batch = msgspec.msgpack.decode(payload)
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise EventFormatError("a batch of KV events is no MessagePack") from None
    events = batch.get("events") if isinstance(batch, dict) else batch[1] if isinstance(batch, list) and len(batch) >= 2 else None
    if not isinstance(events, list):
        raise EventFormatError("a batch of KV events has no list of events")
    read = (_read(event) for event in events)
    return [event for event in read if event is not None]


def _read(event: Any) -> CacheEvent | None:
    name, fields = _named(event)
    if name == "AllBlocksCleared":
        return Cleared()
    if name not in _FIELDS:
        return None  # a kind of event that came later
    hashes = fields.get("block_hashes")
    if not isinstance(hashes, list) or not all(_is_hash(each) for each in hashes):
        raise EventFormatError(f"a KV event {name} has no hashes of blocks")
    if fields.get("medium") not in _FIRST_TIER:
        return None
    group = fields.get("group_idx")
    group = group if isinstance(group, int) else 0
    return Removed(hashes, group) if name == "BlockRemoved" else _stored(fields, hashes, group)


def _stored(fields: Mapping[str, Any], hashes: Sequence[Hash], group: int) -> Stored | None:
    if fields.get("lora_id") is not None or fields.get("lora_name") is not None or _has_keys(fields.get("extra_keys")):
        return None
    parent, tokens, size = fields.get("parent_block_hash"), fields.get("token_ids"), fields.get("block_size")
    if parent is not None and not _is_hash(parent):
        raise EventFormatError("a KV event BlockStored has a parent that is no hash")
    if not isinstance(size, int) or not isinstance(tokens, list) or not all(type(each) is int and 0 <= each < _LARGEST_TOKEN for each in tokens):
        raise EventFormatError("a KV event BlockStored has no tokens or no size of blocks")
    if not 0 < size <= _LARGEST_BLOCK or len(tokens) != len(hashes) * size:
        return None  # layers that keep a state, not blocks of tokens
    return Stored(hashes, parent, tokens, size, group)


def _named(event: Any) -> tuple[str, Mapping[str, Any]]:
    if isinstance(event, dict):
        return str(event.get("type")), event
    if isinstance(event, list) and event and isinstance(event[0], str):
        return event[0], dict(zip(_FIELDS.get(event[0], ()), event[1:], strict=False))
    raise EventFormatError("a KV event has no name")


def _is_hash(value: Any) -> bool:
    return type(value) is int or isinstance(value, bytes)


def _has_keys(extra: Any) -> bool:
    return isinstance(extra, list) and any(extra)
