"""Which of the decisions that match wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from headway.router.decisions.result import Evaluated

Strategy: TypeAlias = Literal["priority", "confidence"]


def ranked(matched: Sequence[Evaluated], strategy: Strategy) -> list[Evaluated]:
    """`matched`, best first; a total order, whatever the order of the configuration.

    1. lower tiers first, if any of them has a tier above 0 (one without a tier is of tier 0)
    2. catch-alls last
    3. `priority`: higher priority, then higher confidence, then the name; `confidence`: higher confidence, then higher priority, then the name

    Confidence takes part only within a tier in which everybody (but catch-alls) has a score, all of one scale.
    """
    tiers: dict[int, list[Evaluated]] = {}
    tiered = any(each.tier > 0 for each in matched)
    for each in matched:
        tiers.setdefault(each.tier if tiered else 0, []).append(each)
    return [each for tier in sorted(tiers) for each in _ranked_tier(tiers[tier], strategy)]


def _ranked_tier(matched: Sequence[Evaluated], strategy: Strategy) -> list[Evaluated]:
    by_score = comparable(matched)

    def place(each: Evaluated) -> tuple[bool, float, float, str]:
        score = -(each.score or 0.0) if by_score else 0.0
        first, second = (-each.priority, score) if strategy == "priority" else (score, -each.priority)
        return each.catch_all, first, second, each.name

    return sorted(matched, key=place)


def comparable(matched: Sequence[Evaluated]) -> bool:
    """Whether confidences say which of `matched` fits better: all measured, on one scale."""
    competing = [each for each in matched if not each.catch_all]
    return bool(competing) and all(each.score is not None for each in competing) and len({each.scale for each in competing}) == 1
