"""The profile of a thread's functions."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from headway.telemetry import function_trace
from headway.telemetry.function_trace import FunctionTrace


def leaf(n: int) -> int:
    return sum(range(n))


def branch() -> None:
    for _ in range(3):
        leaf(10)


def traced(trace: FunctionTrace) -> None:
    def work() -> None:
        with trace.thread():
            branch()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def functions(path: Path) -> dict[str, dict[str, object]]:
    return {row["function"]: row for row in json.loads(path.with_suffix(".json").read_text())["functions"]}


def test_calls_of_the_thread_are_counted_and_only_those(tmp_path: Path) -> None:
    path = tmp_path / "traces" / "functions-1"
    trace = FunctionTrace(path)
    traced(trace)
    leaf(10)  # another thread's
    trace.write()
    found = functions(path)
    assert (found["leaf"]["calls"], found["branch"]["calls"]) == (3, 1)
    assert found["leaf"]["file"] == __file__
    assert found["leaf"]["line"] == leaf.__code__.co_firstlineno
    assert found["<built-in method builtins.sum>"]["calls"] == 3
    branch_row = found["branch"]
    assert float(str(branch_row["total_seconds"])) >= float(str(branch_row["own_seconds"]))
    text = path.with_suffix(".txt").read_text()
    assert f"  leaf ({__file__}:" in text


def test_it_can_be_written_while_the_thread_runs(tmp_path: Path) -> None:
    trace = FunctionTrace(tmp_path / "running")
    done, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with trace.thread():
            branch()
            done.set()
            go_on.wait(10)
            branch()

    thread = threading.Thread(target=work)
    thread.start()
    assert done.wait(10)
    trace.write()
    assert functions(tmp_path / "running")["leaf"]["calls"] == 3
    go_on.set()
    thread.join()
    trace.write()
    assert functions(tmp_path / "running")["leaf"]["calls"] == 6


def test_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_trace, "MOST_ROWS", 2)
    trace = FunctionTrace(tmp_path / "short")
    traced(trace)
    trace.write()
    made = json.loads((tmp_path / "short.json").read_text())
    assert len(made["functions"]) == 2
    assert made["other_functions"]["functions"] >= 2
    assert len((tmp_path / "short.txt").read_text().splitlines()) == 4


def test_a_folder_that_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    trace = FunctionTrace(tmp_path / "file" / "functions")
    trace.write()
    assert "could not be written" in caplog.text
