"""How many tokens one step may compute."""

from __future__ import annotations

from typing import Final

from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.launch import Launch

BUDGET: Final = sight("max_num_batched_tokens=", pattern=r"max_num_batched_tokens=(?P<tokens>\d+)")
SIGHTS: Final[tuple[Sight, ...]] = (BUDGET,)


_DEFAULT: Final = 2048  # the smallest budget that a server chooses by itself


def chosen_small(launch: Launch) -> bool:
    """Whether somebody set a budget below every default."""
    fact = launch.fact("max_num_batched_tokens")
    return fact is not None and fact.value.isdigit() and int(fact.value) < _DEFAULT


def step_budget_of(log: Log, launch: Launch) -> Fact[int] | None:
    """As given, else as the engine says it chose."""
    fact = launch.fact("max_num_batched_tokens")
    if fact and fact.value.isdigit():
        return Fact(int(fact.value), fact.quote)
    hit = log.last(BUDGET)
    return Fact(int(hit.number("tokens")), hit.quote()) if hit else None
