"""A bar on standard error while files are read that take longer than a moment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# About what is read in two seconds. Smaller files are done before anybody looks.
_BYTES_AT_LEAST: Final = 64 << 20


@contextmanager
def reading_bar(files: Sequence[Path]) -> Iterator[Callable[[int], None] | None]:
    """What to tell of bytes that were read; None when there is nothing to show, or no terminal to show it on."""
    total = sum(path.stat().st_size for path in files if path.is_file())
    if total < _BYTES_AT_LEAST or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    bar = Progress(BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    with bar:
        task = bar.add_task("", total=total)
        yield lambda nbytes: bar.advance(task, nbytes)
