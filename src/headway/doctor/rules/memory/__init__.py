"""Memory: what does not fit, and why."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.memory.cache_room import RULES as CACHE_ROOM
from headway.doctor.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = (*CACHE_ROOM,)
