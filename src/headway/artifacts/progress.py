"""How a long download tells where it is, and a bar for terminals."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

# (label, bytes done, bytes in total or None when unknown); may be called from any thread, often.
ProgressCallback = Callable[[str, int, int | None], None]


class DownloadBars:
    """A progress callback that draws one bar per label; use as a context manager.

    On something that is not a terminal rich prints the final state only, so logs stay short.
    """

    def __init__(self, console: Console | None = None):
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console or Console(stderr=True))
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> DownloadBars:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tasks:
            self._progress.stop()

    def __call__(self, label: str, done: int, total: int | None) -> None:
        if not self._tasks:  # nothing is drawn when nothing is downloaded
            self._progress.start()
        if label not in self._tasks:
            self._tasks[label] = self._progress.add_task(label, total=total)
        self._progress.update(self._tasks[label], completed=done, total=total)
