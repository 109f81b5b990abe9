"""Batches of KV events as bytes, put together from plain lists and maps by msgspec alone, in the forms that engines use."""

from __future__ import annotations

from typing import Any

import msgspec

FIELDS = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys", "group_idx")


def stored(hashes: list[Any], parent: Any, tokens: list[int], size: int, *more: Any) -> list[Any]:
    """`more`: lora_id, medium, lora_name, extra_keys, group_idx; vLLM's beginnings had lora_id alone."""
    return ["BlockStored", hashes, parent, tokens, size, *(more or (None,))]


def removed(hashes: list[Any], *medium: Any) -> list[Any]:
    return ["BlockRemoved", hashes, *medium]


CLEARED: list[Any] = ["AllBlocksCleared"]


def batch(*events: Any, ts: float = 1.0, rank: int | None = 0) -> bytes:
    return msgspec.msgpack.encode([ts, list(events), rank])


def as_map(event: list[Any]) -> dict[str, Any]:
    names = {"BlockStored": FIELDS, "BlockRemoved": ("block_hashes", "medium", "group_idx"), "AllBlocksCleared": ()}[event[0]]
    return {"type": event[0], **dict(zip(names, event[1:], strict=False))}
