"""RefusedLosses: what would be lost on the way to the model is refused, not dropped."""

from __future__ import annotations

from typing import Literal

from headway.errors import NotBuiltError


class RefusedLosses:
    """LossNotes of the engine's server. What changes no answer, such as a hint for caches, may go."""

    def note(self, field_name: str, reason: str = "dropped", severity: Literal["info", "warning"] = "warning") -> None:
        """Raises NotBuiltError."""
        if severity == "warning":
            raise NotBuiltError(f"{field_name} cannot be shown to this model", param=field_name, fix="Leave it out.")
