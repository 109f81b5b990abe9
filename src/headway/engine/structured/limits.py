"""What one grammar may cost while it is compiled."""

from __future__ import annotations

from typing import Final

MOST_SECONDS: Final = 5  # of one processor; a common schema takes 10 to 30 ms
MOST_WALL_SECONDS: Final = 60  # where the processors are busy with other things
MOST_BYTES: Final = 512 << 20  # of memory
MOST_STACK: Final = 2 << 20  # threads of the engine have 8 MiB
MOST_VOCABULARY: Final = 1 << 30  # bytes; one of 256,000 tokens is about 10 MB
MOST_MESSAGE: Final = 4 << 20
