"""A bar on standard error for work in stages, each of which tells how much of it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stage_bar() -> Iterator[Callable[[str, float], None]]:
    """What to tell of a stage and the part of it that is done, 0 to 1. Nothing is drawn where standard error is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("preparing", total=1.0)
        current = ""

        def tell(stage: str, done: float) -> None:
            nonlocal current
            if stage != current:
                bar.reset(task, total=1.0, description=stage)
                current = stage
            bar.update(task, completed=done)

        yield tell
