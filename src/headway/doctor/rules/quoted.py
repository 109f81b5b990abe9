"""Lines as evidence: each once, in the order given; and what a line says, inside a sentence."""

from __future__ import annotations

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.masking import mask
from headway.doctor.finding import Quote

_AT_MOST = 4


def quoted(*hits: Hit | None) -> list[Quote]:
    """The first four different lines of these hits; None is left out."""
    return list(dict.fromkeys(hit.quote() for hit in hits if hit is not None))[:_AT_MOST]


def said(hit: Hit, at_most: int = 160) -> str:
    """The text of its line, without what logger and envelope put around it, masked and cut."""
    text = " ".join(mask(hit.line.text).split())
    return text if len(text) <= at_most else text[:at_most] + "…"


def probes_about(context: Context, *words: str) -> list[Quote]:
    """The first two checks already made (`host.probes`) that name one of these words."""
    found = [
        context.quote(f"host.probes.{index}") for index, probe in enumerate(context.items("host.probes")) if any(word and word in str(probe) for word in words)
    ]
    return found[:2]
