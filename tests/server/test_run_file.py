"""Notes of running servers."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from headway.server.run_file import RunningServer, is_alive, noted, run_folder, running_servers, this_process


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))


def test_a_note_lasts_as_long_as_its_server() -> None:
    assert running_servers() == []
    here = this_process("http://127.0.0.1:1", "m", 1, None)
    with noted(here) as path:
        assert running_servers() == [here]
        assert path.name == f"serve-{os.getpid()}.json"
        assert run_folder().stat().st_mode & 0o077 == 0
    assert running_servers() == []


def test_a_cache_that_cannot_be_written_costs_only_the_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("HEADWAY_CACHE", str(file))
    with noted(this_process("http://127.0.0.1:1", "m", 1, None)):
        assert running_servers() == []


def test_a_process_that_only_has_the_same_id_is_another() -> None:
    here = this_process("http://127.0.0.1:1", "m", 1, None)
    assert is_alive(here)
    assert not is_alive(dataclasses.replace(here, started=here.started - 100))
    assert not is_alive(RunningServer(2**22 + 5, 0.0, "", ""))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', json.dumps({"pid": 1, "started": 0, "url": "", "model": "", "more": 1})])
def test_files_that_are_no_notes_are_removed(text: str) -> None:
    run_folder().mkdir(parents=True)
    path = run_folder() / "serve-1.json"
    path.write_text(text)
    assert running_servers() == []
    assert not path.exists()
