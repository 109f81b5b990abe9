"""Usage: the tokens of one answer, as its backend counted them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BYTES_PER_TOKEN = 4  # for estimates where nobody counted


@dataclass(frozen=True, slots=True)
class Usage:
    """`cached_tokens` and `cache_write_tokens` are parts of `prompt_tokens`, `cache_write_1h_tokens` (kept for an hour) of the latter. `estimated`: the
    answer ended before its backend had counted."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    estimated: bool = False


def usage_of(body: Mapping[str, Any]) -> Usage | None:
    """From the `usage` of a chat completion (or of its last chunk), None when there is none."""
    found = body.get("usage")
    if not isinstance(found, Mapping):
        return None
    details = found.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    return Usage(
        token_count(found.get("prompt_tokens")), token_count(found.get("completion_tokens")),
        token_count(details.get("cached_tokens")), token_count(details.get("cache_creation_tokens")),
        token_count(details.get("cache_creation_1h_tokens")),
    )  # fmt: skip


def token_count(value: object) -> int:
    """Backends are not trusted: what is no number of tokens counts as 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0
