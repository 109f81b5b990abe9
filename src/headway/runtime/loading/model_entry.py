"""ModelEntry: one model of the configuration, from the command line or a models file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

NAME_RULE: Final = "a non-empty text without control characters"


def is_name(value: Any) -> bool:
    """Whether a model can be served under it: it stands in lines of the log and in labels of metrics."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """What the operator asked for. None means: the worker's or the family's default.

    `model` is a hub id, a short name or a local folder or file; `options` are for the family.
    """

    model: str
    revision: str | None = None
    name: str | None = None
    family: str | None = None
    device: str = "auto"
    engine: str = "auto"
    memory_budget_gib: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    enable_shared_context: bool | None = None
    batch_window_ms: float | None = None
    max_num_seqs: int | None = None
