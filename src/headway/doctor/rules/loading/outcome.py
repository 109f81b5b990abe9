"""Whether a start went on in spite of a line: what was overcome is no fault."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.facts.startup import STAGES

_QUIET: Final = ("DEBUG", "INFO", "WARNING")


def overcome(case: Case, hit: Hit) -> bool:
    """The server of the same log became ready after this line."""
    ready = case.log.last(STAGES["ready"], STAGES["listening"])
    return ready is not None and ready.line.source == hit.line.source and ready.line.number > hit.line.number


def only_a_warning(hit: Hit) -> bool:
    """The program itself calls the line a warning or less."""
    return hit.line.level in _QUIET


def of_the_model_runtime(case: Case) -> bool:
    """A model runtime or its router wrote the log: the reasons it reports have rules of their own."""
    return case.launch.program in ("vllm-srun", "vllm-sr")
