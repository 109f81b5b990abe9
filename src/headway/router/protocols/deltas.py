"""Chunks of a chat completion stream, read for translation: what the first choice says next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.wire.answer_delta import CallPart, Delta

_NOTHING = Delta()


def read_delta(chunk: Mapping[str, Any]) -> Delta:
    """Choices after the first are left out: the protocols that are translated have one."""
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping) or choice.get("index", 0) != 0:
        return _NOTHING
    return _delta(choice, choice.get("delta"))


def read_message(completion: Mapping[str, Any]) -> Delta:
    """A whole chat completion as one delta."""
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return _delta(choice, choice.get("message")) if isinstance(choice, Mapping) else _NOTHING


def _delta(choice: Mapping[str, Any], said: Any) -> Delta:
    said = said if isinstance(said, Mapping) else {}
    calls = said.get("tool_calls")
    stop, logprobs = choice.get("stop_reason"), choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    return Delta(
        reasoning=_text(said.get("reasoning_content")) or _text(said.get("reasoning")),
        text=_text(said.get("content")),
        refusal=_text(said.get("refusal")),
        calls=tuple(_call(at, call) for at, call in enumerate(calls) if isinstance(call, Mapping)) if isinstance(calls, list) else (),
        finish=choice.get("finish_reason") if isinstance(choice.get("finish_reason"), str) else None,
        stop=stop if isinstance(stop, str) else None,
        logprobs=tuple(entry for entry in content if isinstance(entry, Mapping)) if isinstance(content, list) else (),
    )


def _call(at: int, call: Mapping[str, Any]) -> CallPart:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    index = call.get("index")
    return CallPart(index if isinstance(index, int) else at, _text(call.get("id")), _text(function.get("name")), _text(function.get("arguments")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
