from __future__ import annotations

import io

from rich.console import Console

from headway.artifacts.progress import DownloadBars


def _console() -> Console:
    return Console(file=io.StringIO(), width=120)


def test_the_final_state_is_printed_once_per_label() -> None:
    console = _console()
    with DownloadBars(console) as bars:
        for label in ("first", "second"):
            bars(label, 10, 1000)
            bars(label, 1000, 1000)
        bars("third", 5, None)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert [text.count(label) for label in ("first", "second", "third")] == [1, 1, 1]
    assert "1.0/1.0 kB" in text


def test_nothing_is_printed_when_nothing_was_downloaded() -> None:
    console = _console()
    with DownloadBars(console):
        pass
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
