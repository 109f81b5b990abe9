"""Audit: who took entries out of the response cache."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import orjson

_AUDITED = 1000


class Audit:
    """Who took what out, newest last. Each line carries the hash of the one before, so that a line that is missing or changed shows."""

    def __init__(self) -> None:
        self._lines: deque[dict[str, Any]] = deque(maxlen=_AUDITED)
        self._last = "0" * 64

    def note(self, action: str, details: Mapping[str, Any], role: str | None) -> None:
        line = {"at": int(time.time()), "action": action, "role": role, **details, "previous": self._last}
        self._last = line["hash"] = hashlib.sha256(orjson.dumps(line, option=orjson.OPT_SORT_KEYS)).hexdigest()
        self._lines.append(line)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return list(self._lines)
