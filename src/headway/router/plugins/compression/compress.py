"""Compressing a chat completions body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from headway.router.config.document.compression_plugin import ContextCompressionPlugin
from headway.router.plugins.compression.extraction import chunks_of, extract, middle_cut, token_estimate
from headway.router.plugins.compression.planning import Budget, Item, items_of, request_tokens
from headway.router.plugins.compression.scoring import Scorer
from headway.router.request.view import text_of

_SHORT_LEAF = 64  # tokens: strings of JSON up to this long stay whole


@dataclass(frozen=True, slots=True)
class Shortened:
    """One message that was."""

    place: int
    kind: str
    before: int
    after: int
    omitted: int

    def described(self) -> dict[str, Any]:
        return {"message": self.place, "target": self.kind, "tokens_before": self.before, "tokens_after": self.after, "omitted_parts": self.omitted}


@dataclass(frozen=True, slots=True)
class Report:
    """In estimated tokens. `reason`: why nothing was done, or why something was. `fits` is False when the request is still over its target."""

    before: int
    after: int
    reason: str
    fits: bool = True
    shortened: tuple[Shortened, ...] = ()

    def described(self) -> dict[str, Any]:
        return {
            "tokens_before": self.before,
            "tokens_after": self.after,
            "tokens_saved": self.before - self.after,
            "reason": self.reason,
            "fits": self.fits,
            "messages": [each.described() for each in self.shortened],
        }


async def compressed(
    body: Mapping[str, Any], settings: ContextCompressionPlugin, budget: Budget, scorer: Scorer, tool_target: int | None = None
) -> tuple[dict[str, Any], Report]:
    """A body with shorter messages; the one that is given stays as it is. Single texts over their own limits come down to them; the live user turn is
    cut in its middle only if that is configured and the request is still over its target. Raises ScoringUnavailableError."""
    before = request_tokens(body)
    if budget.trigger is not None and before <= budget.trigger:
        return dict(body), Report(before, before, "below_trigger")
    messages = list(body.get("messages") or ())
    done: list[Shortened] = []
    for item in items_of(settings, messages, tool_target):
        message, omitted = await _shorter(messages[item.place], item, scorer)
        after = token_estimate(text_of(message))
        if after < item.tokens:
            messages[item.place] = message
            done.append(Shortened(item.place, item.kind, item.tokens, after, omitted))
    changed = {**body, "messages": messages}
    if budget.target is not None and settings.targets.current_user.mode == "truncate":
        over = request_tokens(changed) - budget.target
        if over > 0:
            done += _cut_live_turn(messages, over)
    after = request_tokens(changed)
    reason = "compressed" if done else "nothing_to_shorten"
    return changed, Report(before, after, reason, budget.target is None or after <= budget.target, tuple(done))


async def _shorter(message: Mapping[str, Any], item: Item, scorer: Scorer) -> tuple[dict[str, Any], int]:
    content = message.get("content")
    if isinstance(content, str):
        text, omitted = await _shorter_text(content, item.target, item.query, scorer)
        return {**message, "content": text}, omitted
    parts, omitted = [], 0
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            share = max(1, item.target * token_estimate(part["text"]) // max(1, item.tokens))
            text, more = await _shorter_text(part["text"], share, item.query, scorer)
            part, omitted = {**part, "text": text}, omitted + more
        parts.append(part)
    return {**message, "content": parts}, omitted


async def _shorter_text(text: str, target: int, query: str, scorer: Scorer) -> tuple[str, int]:
    """JSON stays JSON: only its long strings are shortened."""
    if token_estimate(text) <= target:
        return text, 0
    if text.lstrip().startswith(("{", "[")):
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            return await _shorter_json(text, found, target, query, scorer)
    chunks = chunks_of(text)
    made = extract(chunks, await scorer.score(query, chunks), target)
    return made.text, made.omitted


async def _shorter_json(text: str, found: Any, target: int, query: str, scorer: Scorer) -> tuple[str, int]:
    long = sum(token_estimate(leaf) for leaf in _strings(found) if token_estimate(leaf) > _SHORT_LEAF)
    if not long:
        return text, 0
    fixed = token_estimate(text) - long
    share = max(0.0, target - fixed) / long
    omitted = 0

    async def walk(value: Any) -> Any:
        nonlocal omitted
        if isinstance(value, str) and token_estimate(value) > _SHORT_LEAF:
            chunks = chunks_of(value)
            made = extract(chunks, await scorer.score(query, chunks), int(token_estimate(value) * share))
            omitted += made.omitted
            return made.text
        if isinstance(value, list):
            return [await walk(item) for item in value]
        if isinstance(value, dict):
            return {key: await walk(item) for key, item in value.items()}
        return value

    return orjson.dumps(await walk(found)).decode(), omitted


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [leaf for child in children for leaf in _strings(child)]


def _cut_live_turn(messages: list[Any], over: int) -> list[Shortened]:
    place = max((at for at, message in enumerate(messages) if isinstance(message, Mapping) and message.get("role") == "user"), default=-1)
    if place < 0 or not isinstance(messages[place].get("content"), str):
        return []
    before = token_estimate(messages[place]["content"])
    messages[place] = {**messages[place], "content": middle_cut(messages[place]["content"], max(_SHORT_LEAF, before - over))}
    after = token_estimate(messages[place]["content"])
    return [Shortened(place, "current_user", before, after, 1)] if after < before else []
