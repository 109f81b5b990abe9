"""How the text of a flag becomes its value: one reader for each kind of flag."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

Kind = Literal["text", "int", "float", "size", "bool", "json", "texts", "words", "csv"]
# texts: one word for each use of the flag, which may be repeated; words: several after one use

_SIZE = re.compile(r"([+-]?\d+(?:\.\d+)?) ?([a-zA-Z]*)")
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def read_size(text: str) -> int:
    """4k = 4000, 4K = 4096 as in vLLM; also KiB, MiB, GiB, TiB (binary) and KB, MB, GB, TB (decimal)."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("a number with an optional unit such as 4k, 25.6K, 2GiB")
    number, unit = match[1], match[2]
    if unit in _DECIMAL:
        factor = _DECIMAL[unit]
    elif unit in _BINARY:
        factor = _BINARY[unit]
    elif unit[1:] == "iB" and unit[:1].upper() in _BINARY:
        factor = _BINARY[unit[0].upper()]
    elif unit[1:] in ("B", "b") and unit[:1].lower() in _DECIMAL and len(unit) == 2:
        factor = _DECIMAL[unit[0].lower()]
    else:
        raise ValueError("a number with an optional unit such as 4k, 25.6K, 2GiB")
    try:
        return int(float(number) * factor) if "." in number else int(number) * factor
    except (OverflowError, ValueError):
        raise ValueError("a number that memory can have") from None


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("an integer") from None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def _bool(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError("true or false")
    return _TRUTH[text.lower()]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError("JSON") from None


def json_or_text(text: str) -> Any:
    """The value of a dotted flag: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _texts(text: str) -> tuple[str, ...]:
    """One word, or a JSON list of words."""
    if text.startswith("["):
        value = _json(text)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
    return (text,)


def _csv(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


READERS: Mapping[Kind, Callable[[str], Any]] = {
    "text": str,
    "int": _int,
    "float": _float,
    "size": read_size,
    "bool": _bool,
    "json": _json,
    "texts": _texts,
    "words": _texts,
    "csv": _csv,
}
