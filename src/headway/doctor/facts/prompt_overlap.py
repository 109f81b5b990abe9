"""How far two requests agree, and what differs first. Texts are compared here and never shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final, Literal

Kind = Literal["time", "id", "number", "text", "cache_salt", "adapter", "tools", "prompt_logprobs", "nothing"]

_TIME: Final = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ,]+\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?|\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AP]M)?"
    r"|\d{4}年\d{1,2}月\d{1,2}日(?: ?\d{1,2}[:时]\d{1,2}分?)?|\b1[5-9]\d{8}(?:\.?\d{1,9})?\b"
    r"|\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b|\b(?:\d{1,2} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? ?\d{1,4}(?:,? \d{4})?"
)
_ID: Final = re.compile(
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,64}\b"
    r"|(?i:\b(?:id|request|req|session|trace|user|conversation|ticket|nonce|seed|uuid|correlation)[-_ ]?(?:id)?\b\W{0,4}[\w.@-]+)|\b[A-Za-z]{2,12}[-_]\w*\d\w*\b"
)
_NUMBER: Final = re.compile(r"\d[\d,.]*")
_WORDS_COMPARED: Final = 4000


@dataclass(frozen=True, slots=True)
class Overlap:
    """`prefix`: characters that agree from the start, about `prefix_tokens`. `shorter`: characters of the shorter text,
    about `tokens`. `alike`: share of the shorter text's words that stand in the other in the same order. `kind`: what
    differs first; `shown`: both values when it is a time, else ""."""

    prefix: int
    prefix_tokens: int
    shorter: int
    tokens: int
    alike: float
    kind: Kind
    shown: str = ""


def overlap_of(one: Mapping[str, Any], other: Mapping[str, Any]) -> Overlap | None:
    """Two requests as `prompt` or `messages`, with `cache_salt`, `lora`, `tools`, ...; None when one holds no text."""
    a, b = text_of(one), text_of(other)
    if not a or not b:
        return None
    shorter = min(a, b, key=len)
    apart = _parameters(one, other)
    prefix = 0 if apart is not None else _common(a, b)
    kind, shown = (apart, "") if apart is not None else ("nothing", "") if prefix == len(shorter) else _kind_at(a, b, prefix)
    return Overlap(prefix, tokens_about(shorter[:prefix]), len(shorter), tokens_about(shorter), _alike(a, b), kind, shown)


def tokens_about(text: str) -> int:
    """Four characters of a European text are about one token; of Chinese and its neighbours each is."""
    wide = sum(1 for character in text if character > "\u2e80")
    return (len(text) - wide) // 4 + wide


def text_of(request: Mapping[str, Any]) -> str:
    """The prompt; of a chat, its messages in order."""
    prompt = request.get("prompt", request.get("input"))
    if isinstance(prompt, str):
        return prompt
    parts = [request.get("system")] if isinstance(request.get("system"), str) else []
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping):
            content = message.get("content")
            parts.append(f"{message.get('role', '')}: {content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)}")
    return "\n".join(map(str, parts))


def _parameters(one: Mapping[str, Any], other: Mapping[str, Any]) -> Kind | None:
    """What keeps requests apart before any text: salts, adapters, the order of tools."""
    if one.get("cache_salt") != other.get("cache_salt"):
        return "cache_salt"
    for name in ("lora", "lora_name", "lora_request", "adapter", "model"):
        if one.get(name) != other.get(name):
            return "adapter"
    tools = one.get("tools"), other.get("tools")
    if isinstance(tools[0], list) and isinstance(tools[1], list) and tools[0] != tools[1] and _as_set(tools[0]) == _as_set(tools[1]):
        return "tools"
    if one.get("prompt_logprobs") is not None or other.get("prompt_logprobs") is not None:
        return "prompt_logprobs"
    return None


def _as_set(tools: Sequence[Any]) -> set[str]:
    return {json.dumps(tool, sort_keys=True, default=str) for tool in tools}


def _common(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _alike(a: str, b: str) -> float:
    words = a.split()[:_WORDS_COMPARED], b.split()[:_WORDS_COMPARED]
    shorter = min(len(words[0]), len(words[1]))
    if not shorter:
        return 0.0
    same = sum(block.size for block in SequenceMatcher(None, *words, autojunk=False).get_matching_blocks()) if shorter < 800 else _same_lines(*words)
    return same / shorter


def _same_lines(a: Sequence[str], b: Sequence[str]) -> int:
    """For long texts: words of one that occur in the other, as a bound."""
    known = set(b)
    return sum(1 for word in a if word in known)


def _kind_at(a: str, b: str, at: int) -> tuple[Kind, str]:
    """What stands where the texts part: the piece of each that covers the place."""
    names: tuple[tuple[Kind, re.Pattern[str]], ...] = (("time", _TIME), ("id", _ID), ("number", _NUMBER))
    for kind, pattern in names:
        pieces = [_covering(text, at, pattern) for text in (a, b)]
        if all(pieces):
            return kind, f"{pieces[0]} / {pieces[1]}" if kind == "time" else ""
    return "text", ""


def _covering(text: str, at: int, pattern: re.Pattern[str]) -> str:
    start = max(0, at - 48)
    return next((found[0] for found in pattern.finditer(text, start, at + 64) if found.start() <= at <= found.end()), "")
