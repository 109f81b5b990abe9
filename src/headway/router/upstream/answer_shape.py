"""What an answer of OpenAI's kind must look like before it is passed on: the least that clients, plugins and translations rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LISTS: Mapping[str | None, str] = {None: "choices", "/completions": "choices", "/embeddings": "data"}
"""The list that holds the answer, by route; None is chat."""
_SHOWN = 300


def is_answer(body: Any, path: str | None) -> bool:
    """Whether `body` is an answer in one piece of the route `path`. A chat says something in each choice."""
    found = body.get(_LISTS[path]) if isinstance(body, Mapping) else None
    if not isinstance(found, list) or not found or not all(isinstance(entry, Mapping) for entry in found):
        return False
    return path is not None or all(isinstance(choice.get("message"), Mapping) for choice in found)


def is_chunk(body: Any) -> bool:
    """Whether `body` can be a chunk of a chat or completion: its choices, if it has some, are objects whose deltas are objects."""
    if not isinstance(body, Mapping):
        return False
    choices = body.get("choices")
    if choices is None:
        return True
    return isinstance(choices, list) and all(isinstance(each, Mapping) and isinstance(each.get("delta"), Mapping | None) for each in choices)


def reported_error(body: Any) -> str | None:
    """What a backend says went wrong in an answer whose status said that all was well; None if it does not."""
    error = body.get("error") if isinstance(body, Mapping) and not body.get("choices") else None
    if not error:
        return None
    told = error.get("message") or error.get("code") or error.get("type") if isinstance(error, Mapping) else error
    return str(told)[:_SHOWN]
