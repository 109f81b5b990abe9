"""What is said of the way in which weights are stored. Imports no torch: whoever only tells people about it needs none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Needs = Literal["fp8", "nvfp4"]  # arithmetic that was made for these numbers, which not every device has


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """`title` is None for plain numbers. `needs`: arithmetic that these numbers were made for."""

    title: str | None = None
    needs: tuple[Needs, ...] = ()


PLAIN: Final = StoredFormat()
