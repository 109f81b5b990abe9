"""A chat completion as a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.router.listener.usage import token_count
from headway.router.protocols.deltas import read_message
from headway.wire.responses.answer import finished, output_items, response_usage


def whole_response(response: Mapping[str, Any], completion: Mapping[str, Any]) -> dict[str, Any]:
    said = read_message(completion)
    return finished(named(response, completion), output_items(said), said.finish, usage_of_response(completion.get("usage")))


def named(response: Mapping[str, Any], completion: Mapping[str, Any]) -> dict[str, Any]:
    """With the model that answered, where the backend tells it."""
    return {**response, "model": completion.get("model") or response["model"]}


def usage_of_response(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, Mapping):
        return None
    return response_usage(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(usage.get("prompt_tokens_details"), "cached_tokens"),
        _count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count(counts: Any, name: str) -> int:
    return token_count(counts.get(name)) if isinstance(counts, Mapping) else 0
