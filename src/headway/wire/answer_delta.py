"""What an answer says next, in no API's form: reasoning, text, a refusal, pieces of tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CallPart:
    """A piece of a tool call. `id` and `name` come with its first piece."""

    index: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Delta:
    """`stop` is the stop string that was met, where it is known. `logprobs` are those of chat completions."""

    reasoning: str = ""
    text: str = ""
    refusal: str = ""
    calls: tuple[CallPart, ...] = ()
    finish: str | None = None
    stop: str | None = None
    logprobs: tuple[Mapping[str, Any], ...] = ()
