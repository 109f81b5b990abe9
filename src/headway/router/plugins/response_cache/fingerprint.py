"""Who may get an answer again: the identity of a request, with and without the text of its latest user turn."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from headway.router.config.document.cache_plugin import ResponseCacheRevision
from headway.router.request.context import RequestContext
from headway.router.request.view import text_of

IRRELEVANT_FIELDS = frozenset(
    {
        "metadata",  # for routing and for books
        "prompt_cache_key",  # where a provider keeps its own cache
        "safety_identifier",
        "service_tier",
        "store",
        "stream",  # a part of the identity of its own
        "stream_options",  # what a replayed stream says of usage follows the request
        "user",  # what a client calls itself; who it is says the scope
    }
)
"""Fields of a chat completions request that cannot change what is generated. Every other field can, also one that nobody here knows."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`partition`: everything that must be equal for an answer to be given again, the text of the latest user turn apart. `exact`: that too.
    Both are SHA-256, hexadecimal. `query` is the text."""

    partition: str
    exact: str
    query: str


def fingerprint(context: RequestContext, scope: str, policy: str, revision: ResponseCacheRevision) -> Fingerprint:
    """`scope` is whose entries these are, `policy` identifies the decision's configuration.

    Taken from the request as the client sent it: what plugins add follows from the policy.
    """
    messages, query = _without_latest_text(context)
    selection = context.selection
    identity = {
        "scope": scope,
        "recipe": context.recipe.name if context.recipe else None,
        "decision": context.decision_name,
        "policy": policy,
        "revision": revision.model_dump(),
        "protocol": context.protocol,
        "stream": context.streams,
        "model": [selection.model, selection.lora, selection.use_reasoning, selection.reasoning_mode, selection.reasoning_effort] if selection else None,
        "messages": messages,
        "fields": {name: value for name, value in context.original.items() if name not in IRRELEVANT_FIELDS and name != "messages"},
    }
    partition = hashlib.sha256(canonical(identity)).hexdigest()
    return Fingerprint(partition, hashlib.sha256(canonical([partition, query])).hexdigest(), query)


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and without blanks: equal for values that are equal, whatever the order of their keys. A number keeps its kind
    (1 and 1.0 differ), as they may to a backend."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def _without_latest_text(context: RequestContext) -> tuple[Any, str]:
    """The messages with the text of the latest user turn taken out, and that text. Only when it is the last message: then the answer is to it."""
    messages = context.original.get("messages")
    if not isinstance(messages, list) or not messages:
        return messages, ""
    last = messages[-1]
    if not isinstance(last, Mapping) or last.get("role") != "user":
        return messages, ""
    return [*messages[:-1], {**last, "content": _without_text(last.get("content"))}], text_of(last)


def _without_text(content: Any) -> Any:
    if not isinstance(content, list):
        return None if isinstance(content, str) else content
    return [{**part, "text": None} if isinstance(part, Mapping) and isinstance(part.get("text"), str) else part for part in content]
