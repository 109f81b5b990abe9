"""Quantities as people write them: 70B, 24GiB, 3.35TB/s, 989TFLOP/s."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headway.errors import ConfigError

_DECIMAL: Final[Mapping[str, float]] = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY: Final[Mapping[str, float]] = {"KI": 2.0**10, "MI": 2.0**20, "GI": 2.0**30, "TI": 2.0**40}
_COUNT: Final[Mapping[str, float]] = {**_DECIMAL, "B": 1e9}  # of parameters: B is a billion
_NUMBER: Final = r"\s*(\d+(?:\.\d+)?|\.\d+)\s*"
_LARGEST: Final = 1e21


def parse_count(text: str, param: str) -> int:
    """A number of parameters: "70B", "135M", "7e9", "1_000_000". Raises ConfigError that names `param`."""
    return int(_parsed(text, "", _COUNT, 1, param, "a count such as 70B or 135M"))


def parse_bytes(text: str, param: str) -> int:
    """Bytes: "24GiB" is binary, "80GB" decimal, a bare number counts GiB. Raises ConfigError that names `param`."""
    return int(_parsed(text, "B?", {**_DECIMAL, **_BINARY}, 2.0**30, param, "a size such as 24GiB or 80GB"))


def parse_bandwidth(text: str, param: str) -> float:
    """Bytes per second: "3.35TB/s", "936GB/s", a bare number counts GB/s. Raises ConfigError that names `param`."""
    return _parsed(text, r"(?:B(?:/S)?)?", {**_DECIMAL, **_BINARY}, 1e9, param, "a rate such as 936GB/s or 3.35TB/s")


def parse_flops(text: str, param: str) -> float:
    """Operations per second: "989TFLOP/s", "0.9T", a bare number counts TFLOP/s. Raises ConfigError that names `param`."""
    return _parsed(text, r"(?:(?:FL)?OPS?(?:/S)?)?", _DECIMAL, 1e12, param, "a rate such as 989TFLOP/s")


def _parsed(text: str, unit: str, scales: Mapping[str, float], bare: float, param: str, expected: str) -> float:
    """`bare` scales a number without any letter behind it."""
    cleaned = text.strip().upper().replace(",", "").replace("_", "")
    prefixes = "|".join(sorted((name for name in scales if name), key=len, reverse=True))
    found = re.fullmatch(rf"{_NUMBER}(?:E\+?(\d{{1,2}}))?({prefixes})?{unit}", cleaned)
    if found is None:
        raise ConfigError(f"--{param.replace('_', '-')}: expected {expected}, found {text!r:.60}", param=param)
    value = float(found[1]) * 10.0 ** int(found[2] or 0)
    value *= bare if cleaned[-1] in "0123456789." and found[2] is None else scales[found[3] or ""]
    if not 0 < value <= _LARGEST:
        raise ConfigError(f"--{param.replace('_', '-')}: expected {expected}, found {text!r:.60}", param=param)
    return value
