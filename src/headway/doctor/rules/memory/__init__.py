"""Memory: what does not fit, and why."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.memory import (
    cache_growth,
    cache_room,
    context_default,
    extra_weights,
    foreign_memory,
    host_memory,
    one_sequence,
    serving_spikes,
    swapping,
    unequal_ranks,
    warm_up,
    weights_too_large,
)
from headway.doctor.rules.rule import Rule

_FILES: Final = (
    cache_room, one_sequence, foreign_memory, weights_too_large, warm_up, serving_spikes, context_default, unequal_ranks, host_memory,
    swapping, extra_weights, cache_growth,
)  # fmt: skip
RULES: Final[tuple[Rule, ...]] = tuple(sorted((rule for file in _FILES for rule in file.RULES), key=lambda rule: int(rule.id[1:])))
