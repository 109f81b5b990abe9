"""Activation: what became of the latest configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Activation:
    """`active_hash` is of the normalised document that serves. `error` says why the offered one
    does not, and `restart` what of it waits for the next start of the process."""

    state: Literal["pending", "active", "failed"] = "pending"
    active_hash: str = ""
    generation: int = 0
    error: str = ""
    restart: tuple[str, ...] = ()
