"""run_batch: asks an application the requests of a file, a bounded number at a time, and writes answers in the order of the requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import BinaryIO

import httpx
import orjson
from starlette.types import ASGIApp

from headway.errors import RequestError
from headway.server.batch.lines import answer_line, batch_request, custom_id_of, raw_lines, refusal_line
from headway.wire.limits import BodyLimits


@dataclass(frozen=True, slots=True)
class BatchCount:
    """Lines that were answered with 200, and the others."""

    answered: int = 0
    refused: int = 0


async def run_batch(
    app: ASGIApp, source: BinaryIO, target: BinaryIO, *, urls: Collection[str], limits: BodyLimits, at_once: int, tell: Callable[[int], None]
) -> BatchCount:
    """`at_once` lines are in memory; `tell` hears how many bytes of `source` are done."""
    asking: deque[tuple[int, asyncio.Task[tuple[bool, bytes]]]] = deque()
    good = bad = done = 0
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://batch", timeout=None) as client:

            async def settle() -> None:
                nonlocal good, bad, done
                size, task = asking[0]
                well, line = await task
                asking.popleft()
                target.write(line)
                target.flush()
                good, bad, done = good + well, bad + (not well), done + size
                tell(done)

            for line in raw_lines(source, limits):
                asking.append((len(line), asyncio.create_task(_answered(client, line, limits, urls))))
                if len(asking) >= at_once:
                    await settle()
            while asking:
                await settle()
    finally:
        for _, task in asking:
            task.cancel()
        await asyncio.gather(*(task for _, task in asking), return_exceptions=True)
    return BatchCount(good, bad)


async def _answered(client: httpx.AsyncClient, line: bytes, limits: BodyLimits, urls: Collection[str]) -> tuple[bool, bytes]:
    """Whether it was answered, and the line of the output."""
    try:
        asked = batch_request(line, limits, urls)
    except RequestError as error:
        return False, refusal_line(custom_id_of(line), error)
    response = await client.post(asked.url, content=orjson.dumps(asked.body), headers={"content-type": "application/json"})
    return response.status_code == 200, answer_line(asked.custom_id, response.status_code, response.content)
