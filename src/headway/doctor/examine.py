"""Evidence in, report out: the one way that every doctor command takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.doctor.case import Case
from headway.doctor.collect.transcript import Transcript
from headway.doctor.diagnosis import Report, diagnose
from headway.doctor.evidence.context import Context, read_context
from headway.doctor.evidence.log.scan import read_logs, read_text
from headway.doctor.rules.catalogue import rules, sights


@dataclass(frozen=True, slots=True)
class Examined:
    """A case with what was said about it."""

    case: Case
    report: Report


def examine(logs: Sequence[Path], context: Path | None = None, progress: Callable[[int], None] | None = None) -> Examined:
    """Files as they are; `progress` is told of bytes that were read. Raises DoctorError when one cannot be read."""
    known = read_context(context) if context is not None else Context()
    return _judged(Case(read_logs(logs, sights(), progress), known))


def examine_known(logs: Sequence[Path], context: Context) -> Examined:
    """A context that was gathered otherwise than from a file, with logs or none. Raises DoctorError when one cannot be read."""
    return _judged(Case(read_logs(logs, sights()), context))


def examine_live(context: Context, transcript: Transcript) -> Examined:
    """What collectors brought: the context, and what probes saw, read as a log."""
    return _judged(Case(read_text("probes", transcript.as_bytes(), sights()), context))


def _judged(case: Case) -> Examined:
    return Examined(case, diagnose(case, rules()))
