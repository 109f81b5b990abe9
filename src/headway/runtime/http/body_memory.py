"""BodyMemory: how many bytes of bodies may be in this process at a time, however many clients send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headway.errors import QueueFullError

_LEAST_BYTES = 256 * 1024 * 1024
_LARGEST_BODIES = 4  # so many of the largest ones fit in any case


class BodyMemory:
    """Lives on one event loop. A body counts from before it is read until its answer is written."""

    def __init__(self, largest_body: int):
        self.limit = max(_LEAST_BYTES, _LARGEST_BODIES * largest_body)
        self.held = 0

    @contextmanager
    def room_for(self, announced: str, largest: int) -> Iterator[None]:
        """Room for a body of `announced` bytes (the header Content-Length), of `largest` when that is unknown or more.

        Raises QueueFullError when there is none.
        """
        size = min(int(announced[:20]), largest) if announced.isdecimal() else largest
        if self.held + size > self.limit and self.held > 0:
            raise QueueFullError(
                f"Bodies of {self.held} bytes are being worked on, the limit is {self.limit}", fix="Send it again later."
            )
        self.held += size
        try:
            yield
        finally:
            self.held -= size
