"""Ctrl-C as a word, not as an exception, while something is looked at that may end early."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupted() -> Iterator[threading.Event]:
    """Set by the first SIGINT; the second interrupts as usual. An exception would be lost where it falls into a finalizer, which Python ignores.

    On other threads than the main one nothing is changed, and it stays unset.
    """
    told = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield told
        return
    before = signal.getsignal(signal.SIGINT)

    def first(number: int, frame: FrameType | None) -> None:
        told.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, first)
    try:
        yield told
    finally:
        signal.signal(signal.SIGINT, before)
