"""`python -m tests.e2e.slow_backend FILE`: a chat backend that takes its time, so that it can be killed in the middle; its port is written to FILE."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.router.upstream.scripted_backend import Asked, ScriptedBackend, answers, chunk, streams

WHOLE_SECONDS, EVENT_SECONDS = 0.5, 0.05


async def slow(asked: Asked, writer: asyncio.StreamWriter) -> None:
    if asked.body.get("stream"):
        await streams(*(chunk(f"{number} ") for number in range(10_000)), pause=EVENT_SECONDS)(asked, writer)
    else:
        await asyncio.sleep(WHOLE_SECONDS)
        await answers()(asked, writer)


async def main(file: Path) -> None:
    async with ScriptedBackend([slow]) as backend:
        file.write_text(str(backend.port))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
