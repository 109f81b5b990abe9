"""FunctionTrace: how often the functions of one thread are called and how long they take, written to two files.

Done by cProfile, which counts calls in C. Up to Python 3.11 it sees the thread that runs inside `thread`; from 3.12 on
it also sees calls of other threads, whose times then mix with those of this one.
"""

from __future__ import annotations

import contextlib
import cProfile
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)
MOST_ROWS = 3000  # functions in a file, those with the most own time; the rest is summed up
COST = "it costs 2 to 6 % of the time of a step of a 135M model, up to 40 % of one of a toy"  # measured: docs/lab.md


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """Seconds: `own_seconds` without, `total_seconds` with the functions that it calls. `line` is 0 for compiled code."""

    function: str
    file: str
    line: int
    calls: int
    own_seconds: float
    total_seconds: float


class FunctionTrace:
    """Wrap the thread's work in `thread`; `write` may be called by another thread, while it runs or afterwards."""

    def __init__(self, path: Path):
        """`path` without suffix: `.txt` is for people, `.json` for programs."""
        self._path = path
        self._profile = cProfile.Profile()
        self._begun = 0.0

    def announce(self) -> None:
        _log.warning(
            "VLLM_TRACE_FUNCTION=1: the calls of the engine's thread are profiled; %s. At the end of the server the %d functions with "
            "the most time of their own are written to %s.txt and .json",
            COST, MOST_ROWS, self._path,
        )  # fmt: skip

    @contextlib.contextmanager
    def thread(self) -> Iterator[None]:
        self._begun = time.perf_counter()
        self._profile.enable()
        try:
            yield
        finally:
            self._profile.disable()

    def write(self) -> None:
        """A folder that cannot be written costs the files, not the server."""
        rows, others = _rows(self._profile.getstats())
        head = {"seconds": time.perf_counter() - self._begun if self._begun else 0.0, "other_functions": others}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.with_suffix(".json").write_text(json.dumps({**head, "functions": [asdict(row) for row in rows]}, indent=1))
            self._path.with_suffix(".txt").write_text(_table(rows, head))
        except OSError as error:
            _log.error("the function profile could not be written to %s: %s", error.filename, error.strerror)
            return
        _log.info("the function profile is in %s.txt and .json", self._path)


def _rows(stats: list[Any]) -> tuple[list[FunctionRow], dict[str, float]]:
    """The MOST_ROWS functions with the most own time, and the sums over the others."""
    rows = sorted((_row(entry) for entry in stats), key=lambda row: row.own_seconds, reverse=True)
    rest = rows[MOST_ROWS:]
    others = {
        "functions": len(rest),
        "calls": sum(row.calls for row in rest),
        "own_seconds": sum(row.own_seconds for row in rest),
    }
    return rows[:MOST_ROWS], others


def _row(entry: Any) -> FunctionRow:
    code = entry.code
    if isinstance(code, str):  # of compiled code there is only a name
        return FunctionRow(code, "", 0, entry.callcount, entry.inlinetime, entry.totaltime)
    return FunctionRow(code.co_qualname, code.co_filename, code.co_firstlineno, entry.callcount, entry.inlinetime, entry.totaltime)


def _table(rows: list[FunctionRow], head: dict[str, Any]) -> str:
    lines = [
        f"{head['seconds']:.3f} s profiled; not shown: {head['other_functions']['functions']} functions with "
        f"{head['other_functions']['own_seconds']:.3f} s",
        f"{'calls':>10} {'own s':>10} {'total s':>10}  function",
    ]
    for row in rows:
        where = f" ({row.file}:{row.line})" if row.file else ""
        lines.append(f"{row.calls:>10} {row.own_seconds:>10.4f} {row.total_seconds:>10.4f}  {row.function}{where}")
    return "\n".join(lines) + "\n"
