"""What each step computed and how long it took, one JSON line per step: from these the times of an engine are fitted (`headway simulate --fit`).

Off unless `HEADWAY_STEP_RECORDS` names a file.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from typing import IO, Final

from headway.engine.step_plan import StepPlan
from headway.errors import ConfigError

VARIABLE: Final = "HEADWAY_STEP_RECORDS"
MOST_RECORDS: Final = 1_000_000
MOST_FILES: Final = 1000
_log = logging.getLogger(__name__)


class StepRecorder:
    """Writes to a new file: `path`, or `path.2`, `path.3`, ... when there are several engines. Not thread-safe: the engine's thread calls.

    A step that follows another without a pause lasts from the end of that one: what is done between two steps (commands, outputs handed
    over) is part of the rhythm that clients see.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.perf_counter):
        """Raises ConfigError when no file can be made."""
        self._out: IO[str] | None = _new_file(path)
        self._clock = clock
        self._began = 0.0
        self._ended: float | None = None  # of the last step, while work was left behind it
        self._left = MOST_RECORDS

    def begin(self) -> None:
        self._began = self._clock() if self._ended is None else self._ended

    def end(self, plan: StepPlan, more: bool) -> None:
        """`more`: another step follows at once. Chunks of one token count as decoding, wherever they are in their sequence."""
        now = self._clock()
        self._ended = now if more else None
        if self._out is None or not plan.chunks:
            return
        prefills = [chunk for chunk in plan.chunks if chunk.count > 1]
        decodes = [chunk for chunk in plan.chunks if chunk.count == 1]
        record = {
            "seconds": round(now - self._began, 7),
            "prefill_tokens": sum(chunk.count for chunk in prefills),
            "prefill_chunks": len(prefills),
            "prefill_pairs": sum(chunk.count * chunk.start + chunk.count * (chunk.count + 1) // 2 for chunk in prefills),
            "decode_rows": len(decodes),
            "decode_context": sum(chunk.start + 1 for chunk in decodes),
            "sampled": sum(chunk.samples for chunk in plan.chunks),
        }
        self._write(json.dumps(record) + "\n")

    def _write(self, line: str) -> None:
        """Recording never ends a request: a disk that is full ends the recording."""
        assert self._out is not None
        try:
            self._out.write(line)
            self._left -= 1
        except OSError as error:
            _log.warning("step records end here: %s", error.strerror)
            self._left = 0
        if self._left == 0:
            self._out.close()
            self._out = None


def _new_file(path: str) -> IO[str]:
    for number in range(1, MOST_FILES + 1):
        try:
            return open(path if number == 1 else f"{path}.{number}", "x", encoding="utf-8", buffering=1)
        except FileExistsError:
            continue
        except OSError as error:
            raise ConfigError(f"{VARIABLE}: {path!r} cannot be made: {error.strerror}", param=VARIABLE, fix="Name a file in a folder that exists.") from None
    raise ConfigError(f"{VARIABLE}: {MOST_FILES} files with the name {path!r} exist", param=VARIABLE, fix="Name a new file.")


def wanted_recorder() -> StepRecorder | None:
    """As the environment says. Raises ConfigError."""
    path = os.environ.get(VARIABLE)
    return StepRecorder(path) if path else None
