"""What a translation from one API to another cannot carry over is noted; whoever translates decides what a note means."""

from __future__ import annotations

from typing import Literal, Protocol


class LossNotes(Protocol):
    """`severity` is "info" for what changes no answer, "warning" for what may."""

    def note(self, field_name: str, reason: str = "dropped", severity: Literal["info", "warning"] = "warning") -> None: ...
