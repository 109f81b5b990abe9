"""The file that tells of the start, where it can be written and where not."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from headway.router.process.startup import FILE_NAME, Startup


def test_it_is_there_while_the_router_is(tmp_path: Path) -> None:
    startup = Startup(tmp_path / FILE_NAME, lambda message: None)
    startup.enter("ready", "The router is ready")
    assert json.loads((tmp_path / FILE_NAME).read_text())["phase"] == "ready"
    startup.end()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_stops_neither_the_start_nor_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A configuration from a ConfigMap lies on a volume that is read-only."""
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    startup = Startup(no_folder / FILE_NAME, lambda message: None)
    with caplog.at_level(logging.WARNING):
        startup.enter("ready", "The router is ready")
        startup.enter("stopping", "Stopping")
    startup.end()
    assert len(caplog.records) == 1
