"""How far a start came."""

from __future__ import annotations

import pytest

from headway.doctor.evidence.log.scan import read_text
from headway.doctor.facts.startup import SIGHTS, startup_of

LINES = {
    "platform": "INFO 11-29 09:14:03 [__init__.py:216] Automatically detected platform cuda.",
    "loading": "INFO 11-29 09:14:06 [gpu_model_runner.py:2602] Starting to load model m...",
    "cache measured": "INFO 11-29 09:14:55 [gpu_worker.py:298] Available KV cache memory: 22.40 GiB",
    "ready": "INFO:     Application startup complete.",
}


@pytest.mark.parametrize("last", LINES)
def test_the_last_stage_counts(last: str) -> None:
    names = list(LINES)
    text = "\n".join(LINES[name] for name in names[: names.index(last) + 1])
    startup = startup_of(read_text("log.txt", text.encode(), SIGHTS))
    assert startup.stage == last
    assert startup.ready == (last == "ready")
    assert startup.reached("platform")
    assert startup.reached("weights loaded") == (last in ("cache measured", "ready"))


def test_nothing_started() -> None:
    startup = startup_of(read_text("log.txt", b"hello\n", SIGHTS))
    assert (startup.stage, startup.hit, startup.reached("platform")) == ("", None, False)


@pytest.mark.parametrize("line", ["The server is fired up and ready to roll!", "main: server is listening on http://x - starting the main loop", '{"msg": "router ready"}'])
def test_other_programs_become_ready(line: str) -> None:
    assert startup_of(read_text("log.txt", line.encode(), SIGHTS)).ready
