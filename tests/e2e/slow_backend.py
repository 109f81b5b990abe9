"""`python -m tests.e2e.slow_backend FILE`: a chat backend that streams without end and otherwise never answers, so that it can be killed in the
middle; its port is written to FILE."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.router.upstream.scripted_backend import Asked, ScriptedBackend, chunk, never, streams

EVENT_SECONDS = 0.05


async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
    if not asked.body.get("stream"):
        await never(asked, writer)
    await streams(*(chunk(f"{number} ") for number in range(10_000)), pause=EVENT_SECONDS)(asked, writer)


async def main(file: Path) -> None:
    async with ScriptedBackend([slow]) as backend:
        file.write_text(str(backend.port))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
