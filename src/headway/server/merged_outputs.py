"""The outputs of several engine requests that answer one HTTP request, as one stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import cast

from headway.engine.beam_search import BeamSearchParams
from headway.engine.outputs import RequestOutput
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.request_terms import ORDINARY, RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.server.engine_port import EnginePort


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One prompt for the engine. `id` is unique in the process. With `beams`, `params` tell only what is shown of them."""

    id: str
    token_ids: list[int]
    params: SamplingParams
    terms: RequestTerms = ORDINARY
    beams: BeamSearchParams | None = None
    pooling: PoolingParams | None = None  # the prompt is read; `params` say nothing then


Outputs = AsyncGenerator[tuple[int, RequestOutput], None]


def run(engine: EnginePort, request: EngineRequest) -> AsyncGenerator[RequestOutput, None]:
    """Closing the generator, or cancelling its reader, aborts the request."""
    if request.pooling is not None:
        return cast(AsyncGenerator[RequestOutput, None], engine.encode(request.token_ids, request.pooling, request.id, request.terms))
    start: Callable[..., AsyncIterator[RequestOutput]] = (
        engine.generate if request.beams is None else partial(engine.beam_search, beams=request.beams)
    )
    outputs = start(request.token_ids, request.params, request.id, request.terms)
    return cast(AsyncGenerator[RequestOutput, None], outputs)


async def merged(engine: EnginePort, requests: Sequence[EngineRequest]) -> Outputs:
    """(index of the request, output) in the order of arrival. The first error ends all requests and is raised."""
    if len(requests) == 1:
        async with aclosing(run(engine, requests[0])) as outputs:
            async for output in outputs:
                yield 0, output
        return
    arrived: asyncio.Queue[tuple[int, RequestOutput | BaseException | None]] = asyncio.Queue()
    tasks = [asyncio.create_task(_pump(engine, request, index, arrived)) for index, request in enumerate(requests)]
    try:
        running = len(tasks)
        while running:
            index, item = await arrived.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield index, item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(
    engine: EnginePort,
    request: EngineRequest,
    index: int,
    arrived: asyncio.Queue[tuple[int, RequestOutput | BaseException | None]],
) -> None:
    try:
        async with aclosing(run(engine, request)) as outputs:
            async for output in outputs:
                arrived.put_nowait((index, output))
        arrived.put_nowait((index, None))
    except Exception as error:
        arrived.put_nowait((index, error))
