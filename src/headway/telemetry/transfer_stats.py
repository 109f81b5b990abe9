"""TransferStats: what happened to KV blocks on their way between engines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransferStats:
    """One event. Either a transfer ended, with `outcome` sent, pulled or the reason of a failure; or the leases changed."""

    outcome: str | None = None
    sends: bool = False  # it is the producer that tells
    seconds: float = 0.0
    nbytes: int = 0  # of blocks
    lease_event: str | None = None  # kept | taken | expired | dropped
    leases: int = 0  # state after the event
    leased_blocks: int = 0
