"""The rules of this category."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = ()
