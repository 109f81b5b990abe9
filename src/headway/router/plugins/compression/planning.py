"""Which messages of a request may be shortened, and to how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headway.router.config.document.compression_plugin import ContextCompressionPlugin, ContextCompressionTarget
from headway.router.plugins.compression.extraction import token_estimate
from headway.router.request.view import text_of

Kind = Literal["tool_outputs", "history", "rag"]
_RAG_CALLS = "rag_"
_IMAGE_TOKENS = 8192
_DEFAULT_RESERVE = 1024
_TARGET_SHARE = 0.8  # of the trigger: what is shortened should not be over it again with the next turn
_DEFAULT_LEAST, _DEFAULT_TARGET = 2000, 1000


@dataclass(frozen=True, slots=True)
class Budget:
    """In tokens. `trigger`: above it (of the whole request) something is done, None for always. `target`: what the whole request should come down
    to, None where nothing tells."""

    trigger: int | None
    target: int | None


@dataclass(frozen=True, slots=True)
class Item:
    """The message at `place` may come down from `tokens` to `target`, for `query`."""

    place: int
    kind: Kind
    tokens: int
    target: int
    query: str


def budget_of(settings: ContextCompressionPlugin, window: int | None, body: Mapping[str, Any]) -> Budget:
    """`window` is the chosen model's. Automatic numbers: the window less what the answer may take is the trigger, 0.8 of it the target; without a
    known window only the limits of single texts count."""
    reserve = settings.budget.reserve_output_tokens
    if reserve == "auto":
        asked = body.get("max_completion_tokens") or body.get("max_tokens")
        reserve = asked if isinstance(asked, int) else _DEFAULT_RESERVE
    room = None if window is None else max(1, window - reserve)
    stated = settings.budget.trigger_tokens
    trigger = None if settings.mode == "always" else room if stated == "auto" else stated
    wanted = settings.budget.target_tokens
    limit = trigger if trigger is not None else room
    target = (None if limit is None else int(limit * _TARGET_SHARE)) if wanted == "auto" else wanted
    return Budget(trigger, target)


def request_tokens(body: Mapping[str, Any]) -> int:
    """Texts, tool definitions and calls by their bytes; an image counts as 8192."""
    total = token_estimate(str(body.get("tools") or ""))
    for message in body.get("messages") or ():
        if isinstance(message, Mapping):
            total += token_estimate(text_of(message)) + token_estimate(str(message.get("tool_calls") or ""))
            content = message.get("content")
            if isinstance(content, list):
                total += _IMAGE_TOKENS * sum(isinstance(part, Mapping) and part.get("type") == "image_url" for part in content)
    return total


def items_of(settings: ContextCompressionPlugin, messages: Sequence[Any], tool_target: int | None = None) -> list[Item]:
    """Instructions, the live user turn, the latest assistant turn and calls of tools are never among them. `tool_target` is a client's own limit
    for the results of tools."""
    turns = [message if isinstance(message, Mapping) else {} for message in messages]
    live = max((at for at, message in enumerate(turns) if message.get("role") == "user"), default=-1)
    latest = max((at for at, message in enumerate(turns) if message.get("role") == "assistant" and not message.get("tool_calls")), default=-1)
    intents = _intents(turns)
    question = text_of(turns[live]) if live >= 0 else ""
    found: list[Item] = []
    for place, message in enumerate(turns):
        kind = _kind(message, place, live, latest)
        if kind is None:
            continue
        target: ContextCompressionTarget = getattr(settings.targets, kind)
        tokens = token_estimate(text_of(message))
        least = target.min_tokens if target.min_tokens is not None else _DEFAULT_LEAST
        limit = target.target_tokens if target.target_tokens is not None else min(_DEFAULT_TARGET, max(1, least // 2))
        if kind == "tool_outputs" and tool_target is not None:
            least, limit = min(least, tool_target), tool_target
        if target.mode == "extractive" and tokens > least:
            found.append(Item(place, kind, tokens, limit, f"{intents.get(str(message.get('tool_call_id')), '')} {question}".strip()))
    return found


def _kind(message: Mapping[str, Any], place: int, live: int, latest: int) -> Kind | None:
    role = message.get("role")
    if role in ("tool", "function"):
        return "rag" if str(message.get("tool_call_id") or "").startswith(_RAG_CALLS) else "tool_outputs"
    if role in ("user", "assistant") and place < live and place != latest and not message.get("tool_calls"):
        return "history"
    return None


def _intents(turns: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """What each call of a tool asked for."""
    found: dict[str, str] = {}
    for message in turns:
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {} if isinstance(call, Mapping) else {}
            found[str(call.get("id"))] = f"{function.get('name', '')} {function.get('arguments', '')}".replace("_", " ")
    return found
