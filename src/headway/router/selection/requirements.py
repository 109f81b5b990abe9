"""Which candidates can answer a request at all: what their cards declare, against what the request needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from headway.errors import ContextLengthError, RequestError
from headway.router.config.document.routing import CandidateRequirements
from headway.router.request.context import RequestContext
from headway.router.request.view import parts_of
from headway.router.selection.candidates import Candidate

_BYTES_PER_TOKEN = 4
_TOKENS_PER_IMAGE = 8192 // _BYTES_PER_TOKEN
_STRUCTURED = ("tools", "functions", "response_format")
_WORDS: Mapping[str, frozenset[str]] = {
    "tools": frozenset({"tools", "tool_use", "tool_calling", "function_calling", "functions"}),
    "structured output": frozenset({"structured_output", "structured_outputs", "json_schema", "json_mode", "response_format"}),
    "image": frozenset({"vision", "image", "images", "multimodal", "image_input"}),
    "audio": frozenset({"audio", "audio_input", "multimodal"}),
    "video": frozenset({"video", "video_input", "multimodal"}),
}
"""Words of `capabilities` that declare each need."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """`capabilities`: a candidate must declare what the request needs. `context`: it must fit the limits of its card, as far as they are known."""

    capabilities: bool = False
    context: bool = False
    complaint: str = "no candidate declares what the request needs"

    @classmethod
    def of(cls, settings: CandidateRequirements | None) -> Requirements:
        return cls(settings is not None and settings.capabilities is not None, settings is not None and settings.context is not None)

    def eligible(self, candidates: Sequence[Candidate], context: RequestContext) -> Sequence[Candidate]:
        """In their order. Raises ContextLengthError, or RequestError `max_output_tokens_exceeded`, when size alone excludes every one."""
        if self.capabilities:
            needs = needs_of(context.body)
            candidates = [candidate for candidate in candidates if all(_declares(candidate, need) for need in needs)]
        if not self.context or not candidates:
            return candidates
        tokens, output = estimated_tokens(context.body), _asked_output(context.body)
        if not context.dry_run:
            context.response_headers["x-vsr-effective-input-tokens"] = str(tokens)
            if output:
                context.response_headers["x-vsr-effective-max-output-tokens"] = str(output)
        for_output = [candidate for candidate in candidates if output <= _limit(candidate, "max_output_tokens")]
        if not for_output:
            raise RequestError(
                f"the request asks for up to {output} tokens, more than every candidate model gives", param="max_tokens", reason="max_output_tokens_exceeded"
            )
        fitting = [candidate for candidate in for_output if tokens + output <= _limit(candidate, "context_window_size")]
        if not fitting:
            raise ContextLengthError(
                f"the request has about {tokens} tokens and asks for {output}, more than the context of every candidate model", param="messages"
            )
        return fitting


def needs_of(body: Mapping[str, Any]) -> list[str]:
    """What a chat completions body needs of its model, as keys of the table."""
    needs = ["tools"] if body.get("tools") or body.get("functions") else []
    style = body.get("response_format")
    if isinstance(style, Mapping) and style.get("type") in ("json_schema", "json_object"):
        needs.append("structured output")
    kinds = {"image": "image_url", "audio": "input_audio", "video": "video_url"}
    parts = {part.get("type") for message in _messages(body) for part in _parts(message)}
    return needs + [need for need, kind in kinds.items() if kind in parts]


def estimated_tokens(body: Mapping[str, Any]) -> int:
    """Four bytes of text or JSON are a token, an image counts as 8192 bytes; rounded up."""
    size = images = 0
    for message in _messages(body):
        content = message.get("content")
        if isinstance(content, str):
            size += len(content.encode("utf-8", "surrogatepass"))
        size += sum(len(part["text"].encode("utf-8", "surrogatepass")) for part in _parts(message) if isinstance(part.get("text"), str))
        images += len(parts_of(message, "image_url"))
        if message.get("tool_calls"):
            size += len(orjson.dumps(message["tool_calls"]))
    size += sum(len(orjson.dumps(body[field])) for field in _STRUCTURED if body.get(field))
    return -(-size // _BYTES_PER_TOKEN) + images * _TOKENS_PER_IMAGE


def _messages(body: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    found = body.get("messages")
    return [message for message in found if isinstance(message, Mapping)] if isinstance(found, list) else []


def _parts(message: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    content = message.get("content")
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []


def _asked_output(body: Mapping[str, Any]) -> int:
    asked = body.get("max_completion_tokens", body.get("max_tokens"))
    return asked if isinstance(asked, int) and asked > 0 else 0


def _limit(candidate: Candidate, name: str) -> float:
    known = getattr(candidate.card, name) if candidate.card else None
    return float("inf") if known is None else known


def _declares(candidate: Candidate, need: str) -> bool:
    card = candidate.card
    if card is None:
        return False
    if card.modalities is not None and need in (card.modalities.input or ()):
        return True
    return not _WORDS[need].isdisjoint(word.strip().lower().replace("-", "_").replace(" ", "_") for word in card.capabilities or ())
