"""`headway doctor log`: files and a context in, a report out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headway.doctor.case import Case
from headway.doctor.diagnosis import Report, diagnose
from headway.doctor.evidence.context import Context, read_context
from headway.doctor.evidence.log.scan import read_logs
from headway.doctor.rules.catalogue import rules, sights


def examine(logs: Sequence[Path], context: Path | None = None) -> Report:
    """Raises DoctorError when a file cannot be read."""
    known = read_context(context) if context is not None else Context()
    return diagnose(Case(read_logs(logs, sights()), known), rules())
