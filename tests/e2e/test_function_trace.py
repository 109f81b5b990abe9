"""VLLM_TRACE_FUNCTION=1 on a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.tiny_server import ask, end, tiny_server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def test_the_engines_functions_are_in_a_file_after_sigterm(tmp_path: Path) -> None:
    with tiny_server(tmp_path, VLLM_TRACE_FUNCTION="1") as served:
        for _ in range(2):
            ask(served)
        end(served)
    (text,) = (tmp_path / "traces").glob("functions-*.txt")
    made = json.loads(text.with_suffix(".json").read_text())
    calls = {(Path(row["file"]).name, row["function"]): row["calls"] for row in made["functions"]}
    assert calls[("core.py", "EngineCore.step")] >= 8, "two answers of four tokens"
    assert calls[("scheduler.py", "Scheduler.schedule")] == calls[("core.py", "EngineCore.step")]
    assert ("chat.py", "create_chat_completion") not in calls
    log = served.log.read_text()
    assert "VLLM_TRACE_FUNCTION=1: the calls of the engine's thread are profiled; it costs" in log
    assert f"the function profile is in {text.with_suffix('')}.txt and .json" in log


def test_without_the_variable_nothing_is_profiled(tmp_path: Path) -> None:
    with tiny_server(tmp_path, VLLM_TRACE_FUNCTION="0") as served:
        ask(served)
        end(served)
    assert not (tmp_path / "traces").exists()
    assert "VLLM_TRACE_FUNCTION" not in served.log.read_text()
