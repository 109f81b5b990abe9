"""Lines as evidence: each once, in the order given."""

from __future__ import annotations

from headway.doctor.evidence.log.line import Hit
from headway.doctor.finding import Quote

_AT_MOST = 4


def quoted(*hits: Hit | None) -> list[Quote]:
    """The first four different lines of these hits; None is left out."""
    return list(dict.fromkeys(hit.quote() for hit in hits if hit is not None))[:_AT_MOST]
