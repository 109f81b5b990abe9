"""What `headway eval` is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.errors import ConfigError
from headway.evaluation.task_file import Task
from headway.evaluation.texts import Text

USUAL_WIDTH: Final = 1024
LEAST_WIDTH: Final = 16


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """`against` None: only whether the model makes sense. `max_length` None: windows of USUAL_WIDTH tokens, questions of any length that the model
    reads; `stride` None: half a window. `limit` cuts texts and tasks. `keep`: the baseline's results are kept, and used again."""

    texts: tuple[Text, ...]
    tasks: tuple[Task, ...]
    against: str | None = None
    threshold: float = 0.02
    dtype: str = "auto"
    max_length: int | None = None
    stride: int | None = None
    limit: int | None = None
    keep: bool = True
    accept_licence: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ConfigError."""
        if not 0 < self.threshold < 1:
            raise ConfigError(f"--threshold must be over 0 and below 100 %, got {self.threshold:.4g}", param="threshold", fix="For example --threshold 1%.")
        if self.max_length is not None and self.max_length < LEAST_WIDTH:
            raise ConfigError(f"--max-length must be at least {LEAST_WIDTH}, got {self.max_length}", param="max_length")
        if self.stride is not None and not 0 < self.stride <= self.width:
            raise ConfigError(f"--stride must be from 1 to the length of a window, {self.width}, got {self.stride}", param="stride")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"--limit must be at least 1, got {self.limit}", param="limit")
        if not self.texts and not self.tasks:
            raise ConfigError("there is nothing to measure: no text and no task", param="text")

    @property
    def width(self) -> int:
        return self.max_length or USUAL_WIDTH

    def settings(self, dtype: str | None, width: int) -> dict[str, Any]:
        """For reports; `width` is that of the windows that were read."""
        return {
            "dtype": dtype, "max_length": self.max_length, "window": width, "stride": min(self.stride or width // 2, width), "limit": self.limit,
            "threshold": self.threshold, "texts": _names(self.texts), "tasks": _names(self.tasks),
        }  # fmt: skip


def _names(each: Sequence[Text | Task]) -> list[str]:
    return [one.name for one in each]
