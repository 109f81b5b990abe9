"""Beam search for servers: the beams of a round run side by side, among everybody else's requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from headway.engine.admission import check_prompt
from headway.engine.beam_requests import as_output, begin, round_requests, row_of
from headway.engine.beam_search import BeamSearchParams
from headway.engine.loading import LoadedEngine
from headway.engine.outputs import RequestOutput
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request

Run = Callable[[Request], AsyncGenerator[RequestOutput, None]]


async def search_beams(
    engine: LoadedEngine, run: Run, prompt_ids: list[int], params: BeamSearchParams, shown: SamplingParams, request_id: str,
    widest: int, terms: RequestTerms,
) -> AsyncGenerator[RequestOutput, None]:  # fmt: skip
    """`run` adds a request and yields its outputs; closing this generator or cancelling its reader ends what runs."""
    deadline = terms.deadline()
    check_prompt(prompt_ids, engine.limits)
    search = begin(prompt_ids, params, engine.limits, engine.tokenizer, widest, shown.logprobs or 0)
    cached: int | None = None
    number = 0
    while not search.done:
        requests = round_requests(
            search, f"{request_id}-{number}", engine.limits, engine.tokenizer, engine.core.scheduler.kv,
            priority=terms.priority, cache_salt=terms.cache_salt, adapter=terms.adapter,
        )  # fmt: skip
        for request in requests:
            request.continues = number > 0
            request.deadline = deadline
        outputs = await _all(run, requests)
        cached = outputs[0].num_cached_tokens if cached is None else cached
        search.advance([row_of(output) for output in outputs])
        number += 1
    yield as_output(search, request_id, None, prompt_ids, shown, engine.tokenizer, cached or 0)


async def _all(run: Run, requests: list[Request]) -> list[RequestOutput]:
    """The first failure ends all of them and is raised."""
    tasks = [asyncio.create_task(_last(run, request)) for request in requests]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _last(run: Run, request: Request) -> RequestOutput:
    last: RequestOutput | None = None
    async with aclosing(run(request)) as outputs:
        async for output in outputs:
            last = output
    assert last is not None
    return last
