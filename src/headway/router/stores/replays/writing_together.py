"""What waits in a queue is written a batch at a time, so that one transaction serves many requests."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def write_together(waiting: queue.Queue[T | None], most: int, write: Callable[[list[T]], None]) -> None:
    """For a thread: `write` gets up to `most` of what waits, in order, until None comes, after what was put before it. What was handed to
    `write` counts as done whatever became of it."""
    while True:
        taken = [waiting.get()]
        while len(taken) < most and taken[-1] is not None:
            try:
                taken.append(waiting.get_nowait())
            except queue.Empty:
                break
        try:
            write([each for each in taken if each is not None])
        finally:
            for _ in taken:
                waiting.task_done()
        if taken[-1] is None:
            return
