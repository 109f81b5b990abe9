"""The model runtime (`vllm-srun`) and the router (`vllm-sr`): loading, configuration, unknown signals, speed, workers."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime import (
    busy_cores,
    device_refused,
    memory_refused,
    names_and_bindings,
    offline_cache,
    old_configuration,
    package_refused,
    reach,
    recorded_kernels,
    slow_start,
    unanswered_signals,
    unpinned_package,
    unread_content,
    worker_exits,
)

_FILES: Final = (
    package_refused, unpinned_package, memory_refused, device_refused, slow_start, offline_cache, recorded_kernels, unanswered_signals, unread_content, old_configuration,
    names_and_bindings, reach, busy_cores, worker_exits,
)  # fmt: skip
RULES: Final[tuple[Rule, ...]] = tuple(sorted((rule for file in _FILES for rule in file.RULES), key=lambda rule: int(rule.id[1:])))
