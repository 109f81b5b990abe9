"""Evidence in, report out: the one way that every doctor command takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headway.doctor.case import Case
from headway.doctor.collect.transcript import Transcript
from headway.doctor.diagnosis import Report, diagnose
from headway.doctor.evidence.context import Context, read_context
from headway.doctor.evidence.log.scan import read_logs, read_text
from headway.doctor.rules.catalogue import rules, sights


def examine(logs: Sequence[Path], context: Path | None = None) -> Report:
    """Files as they are. Raises DoctorError when one cannot be read."""
    known = read_context(context) if context is not None else Context()
    return diagnose(Case(read_logs(logs, sights()), known), rules())


def examine_live(context: Context, transcript: Transcript) -> Report:
    """What collectors brought: the context, and what probes saw, read as a log."""
    return diagnose(Case(read_text("probes", transcript.as_bytes(), sights()), context), rules())
