"""All rules, in the order of the catalogue."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from headway.doctor.evidence.sight import Sight
from headway.doctor.facts import (
    allocator,
    cpu_threads,
    device,
    exceptions,
    launch,
    load,
    memory,
    own_probe,
    processor_use,
    requests,
    startup,
    step_budget,
)
from headway.doctor.rules.rule import Category, Rule

ROOMS: Final[dict[Category, str]] = {
    "memory": "O",
    "throughput": "T",
    "ttft": "F",
    "loading": "L",
    "network": "N",
    "quantization": "Q",
    "distributed": "D",
    "runtime": "R",
}
_FACTS: Final = (allocator, cpu_threads, device, exceptions, launch, load, memory, own_probe, processor_use, requests, startup, step_budget)


@cache
def rules() -> tuple[Rule, ...]:
    """Each room exports `RULES`. Raises ValueError when an id stands twice or in a foreign room."""
    found: dict[str, Rule] = {}
    for category, letter in ROOMS.items():
        for rule in import_module(f"headway.doctor.rules.{category}").RULES:
            if rule.id in found or not rule.id.startswith(letter):
                raise ValueError(f"rule {rule.id} stands twice, or not in its room {category}")
            found[rule.id] = rule
    return tuple(found.values())


@cache
def sights() -> tuple[Sight, ...]:
    """Everything that a scan has to look for."""
    wanted = [seen for rule in rules() for seen in rule.sees]
    wanted += [seen for module in _FACTS for seen in module.SIGHTS]
    return tuple(dict.fromkeys(wanted))


def category_of(rule_id: str) -> Category:
    return next(category for category, letter in ROOMS.items() if rule_id.startswith(letter))
