"""The body of `POST /v1/classify`, checked: what to read, with which head, how long input is treated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from headway.errors import RequestError
from headway.wire import checked

Overflow: TypeAlias = Literal["reject", "truncate", "window"]


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """`deadline_ms` counts from the arrival of the request; None = no deadline."""

    deadline_ms: float | None = None
    return_meta: bool = False


@dataclass(frozen=True, slots=True)
class WindowOption:
    """`tokens` with the special ones, `overlap` in content tokens."""

    tokens: int
    overlap: int


@dataclass(frozen=True, slots=True)
class TextInput:
    """One text, or a pair of texts."""

    text: str
    text_pair: str | None = None


@dataclass(frozen=True, slots=True)
class GroundedInput:
    """An answer that is to be supported by a context."""

    answer: str
    context: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class InvalidInput:
    """An item that cannot be read; its siblings go on. `message` is shown."""

    message: str


ClassifyInput: TypeAlias = TextInput | GroundedInput | InvalidInput


@dataclass(frozen=True, slots=True)
class ClassifyRequest:
    """None = the head's own setting."""

    inputs: tuple[ClassifyInput, ...]
    head: str | None = None
    overflow: Overflow | None = None
    max_tokens: int | None = None
    window: WindowOption | None = None
    threshold: float | None = None
    return_tokens: bool = False
    options: CommonOptions = field(default_factory=CommonOptions)


MAX_INPUTS = 2048
MAX_MILLISECONDS = 1e9
COMMON_OPTIONS = frozenset({"deadline_ms", "return_meta"})
_FIELDS = frozenset({"model", "input", "head", "options"})
_OPTIONS = COMMON_OPTIONS | {"overflow", "max_tokens", "window", "threshold", "return_tokens"}
_OVERFLOWS: tuple[Overflow, ...] = ("reject", "truncate", "window")
_PAIR = frozenset({"text", "text_pair"})
_GROUNDED = frozenset({"context", "question", "answer"})


def common_options(options: Mapping[str, Any]) -> CommonOptions:
    """What all surfaces have in common, from an `options` object. Raises RequestError."""
    return CommonOptions(
        checked.number(options, "deadline_ms", 0, MAX_MILLISECONDS, above=True), checked.flag(options, "return_meta")
    )


def parse_classify(fields: Mapping[str, Any]) -> ClassifyRequest:
    """The checked body. Raises RequestError, reason `invalid_request`, for everything that can be seen without the model."""
    checked.only(fields, _FIELDS)
    options = checked.objects(fields, "options")
    checked.only(options, _OPTIONS, "options")
    window = _window(options)
    overflow = cast(Overflow | None, checked.one_of(options, "overflow", _OVERFLOWS))
    max_tokens = checked.whole(options, "max_tokens", 1)
    if window is not None and overflow not in (None, "window"):
        raise RequestError(f"options.window needs overflow window, got {overflow}", param="window")
    if window is not None and max_tokens is not None and window.tokens > max_tokens:
        raise RequestError(f"window.tokens ({window.tokens}) is more than max_tokens ({max_tokens})", param="window")
    return ClassifyRequest(
        inputs=_inputs(checked.required(fields, "input")),
        head=checked.name_text(fields, "head"),
        overflow=overflow,
        max_tokens=max_tokens,
        window=window,
        threshold=checked.number(options, "threshold", 0, 1),
        return_tokens=checked.flag(options, "return_tokens"),
        options=common_options(options),
    )


def _window(options: Mapping[str, Any]) -> WindowOption | None:
    if options.get("window") is None:
        return None
    window = checked.objects(options, "window")
    checked.only(window, {"tokens", "overlap"}, "options.window")
    checked.required(window, "tokens")
    tokens = checked.whole(window, "tokens", 2) or 0
    overlap = checked.whole(window, "overlap", 0) or 0
    if overlap >= tokens:
        raise RequestError(f"window.overlap ({overlap}) must be less than window.tokens ({tokens})", param="window")
    return WindowOption(tokens, overlap)


def counted(items: list[Any], most: int, name: str = "input") -> list[Any]:
    """A list of 1 to `most` items."""
    if not 1 <= len(items) <= most:
        raise RequestError(f"{name} must have from 1 to {most} items, got {len(items)}", param=name)
    return items


def _inputs(value: Any) -> tuple[ClassifyInput, ...]:
    items = counted(value, MAX_INPUTS) if isinstance(value, list) else [value]
    return tuple(_input(item, f"input[{index}]" if isinstance(value, list) else "input") for index, item in enumerate(items))


def _input(item: Any, name: str) -> ClassifyInput:
    if isinstance(item, str):
        return TextInput(item)
    if not isinstance(item, dict):
        raise checked.wrong(name, "text, {text, text_pair} or {context, question, answer}", item)
    if "answer" in item:
        checked.only(item, _GROUNDED, name)
        answer = checked.text(item, "answer", f"{name}.answer")
        if answer is None:
            raise RequestError(f"{name}.answer is required", param=name)
        context, question = (checked.text(item, part, f"{name}.{part}") for part in ("context", "question"))
        return GroundedInput(answer, context or "", question or "")
    checked.only(item, _PAIR, name)
    text = checked.text(item, "text", f"{name}.text")
    if text is None:
        raise RequestError(f"{name}.text is required", param=name)
    return TextInput(text, checked.text(item, "text_pair", f"{name}.text_pair"))
