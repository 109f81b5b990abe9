"""Lines belong to records: what a logger began, and the bare lines that follow it (a traceback, a message of several lines).

A bare line has the process of its record. Bare lines of a record that quotes a prompt are the user's words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from headway.doctor.evidence.log.dress import undress
from headway.doctor.evidence.log.line import Line
from headway.doctor.evidence.log.request_text import closes_request_text, opens_request_text

LINES_BACK: Final = 256
"""A record is looked for so many lines above. Longer messages lose their owner."""

_MAY_BEGIN: Final = re.compile(
    r"\b(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b|pid=|\[rank|NCCL |\(raylet|[\"']?(?:level|severity|levelname|msg|message)[\"']? ?:|"
    r"[IWEF]\d{4} \d|\.\d{3} [IWED] |\[[IWEF] |TRT-LLM|TensorRT|Traceback \(most|\d\d:\d\d:\d\d TP\d"
)
_LONG: Final = 8192
_TRIES: Final = 16  # so many lines of other containers may stand between


@dataclass(frozen=True, slots=True)
class _Record:
    """`process` of the record's first line. `of_users`: the bare lines below are a user's words."""

    process: str
    of_users: bool


_NONE: Final = _Record("", False)


class Records:
    """Knows the records of one file, as far as anybody asks. Lines are asked for in ascending order."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, _Record]] = {}  # container -> the last bare line asked for, its record

    def owned(self, line: Line, above: Sequence[str]) -> Line | None:
        """A bare line with its record's process; None when it holds a user's words. `above`: raw lines before it."""
        if line.starts_a_record:
            return line
        record = self._record_of(line, above)
        self._known[line.container] = (line.number, record)
        if record.of_users:
            return None
        return replace(line, process=record.process) if record.process and record.process != line.process else line

    def _record_of(self, line: Line, above: Sequence[str]) -> _Record:
        """The nearest line above that begins a record, in the same container."""
        asked, before = self._known.get(line.container, (0, _NONE))
        closed, tries = False, 0
        for number, raw in zip(range(line.number - 1, line.number - 1 - LINES_BACK, -1), reversed(above), strict=False):
            if number <= asked:
                return _Record(before.process, before.of_users and not closed)
            closed = closed or closes_request_text(raw[-_LONG:].rstrip("\r"))
            if not _MAY_BEGIN.search(raw, 0, _LONG):
                continue
            if (tries := tries + 1) > _TRIES:
                break
            head = undress(line.source, number, raw)
            if head.container != line.container:
                continue
            if head.starts_a_record:
                return _Record(head.process, opens_request_text(head.text) and not closed)
            if head.text.startswith("Traceback (most recent call last)"):
                return _NONE
        return _NONE
