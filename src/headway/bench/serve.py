"""`headway bench serve`: put a planned load on a running server and record every request."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import aiohttp

from headway.bench.arrivals import Arrivals, send_times
from headway.bench.measures import Exchange
from headway.bench.openai_client import Target, exchange, session
from headway.bench.prompts import Prompt, PromptTokenizer
from headway.errors import ConfigError, HeadwayError

_RETRY_SECONDS = 1.0


class ServerUnreachableError(HeadwayError):
    """The server to be measured did not answer in time."""

    reason = "server_unreachable"


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """How the prompts are sent."""

    arrivals: Arrivals
    max_concurrency: int | None = None
    warmups: int = 0
    ready_timeout: float = 600.0  # seconds; 0 = do not ask first
    seed: int = 0

    def __post_init__(self) -> None:
        if self.max_concurrency is not None and self.max_concurrency < 1:
            raise ConfigError(f"--max-concurrency must be at least 1, found {self.max_concurrency}", param="max_concurrency")


async def first_model(base_url: str, headers: dict[str, str], timeout: float) -> str:
    """The first id of /v1/models, asked again until the server is up. Raises ServerUnreachableError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    async with session() as client:
        while True:
            try:
                async with client.get(base_url.rstrip("/") + "/v1/models", headers=headers) as response:
                    if response.status == 200:
                        return str((await response.json())["data"][0]["id"])
                    found = f"HTTP {response.status}"
            except (aiohttp.ClientError, OSError, ValueError, LookupError, TypeError) as error:
                found = f"{type(error).__name__}: {error}"
            if time.monotonic() >= deadline:
                raise ServerUnreachableError(
                    f"{base_url}/v1/models gave no model within {timeout:.0f} s, last: {found}",
                    fix="Check --base-url (or --host and --port), or name the model with --model.",
                )
            await asyncio.sleep(_RETRY_SECONDS)


async def run_load(
    target: Target,
    prompts: Sequence[Prompt],
    plan: LoadPlan,
    tokenizer: PromptTokenizer,
    on_done: Callable[[Exchange], None] = lambda done: None,
) -> tuple[list[Exchange], float]:
    """Send all prompts as planned. Returns the exchanges in the order of `prompts` and the seconds it all took.

    The clock runs from the first request's due time to the last answer; warm-up and ready check are before it.
    Raises ServerUnreachableError when the ready check fails.
    """
    async with session(plan.max_concurrency) as client:
        if plan.ready_timeout > 0:
            await _wait_until_answering(client, target, prompts[0], plan.ready_timeout)
        for index in range(plan.warmups):
            await exchange(client, target, prompts[index % len(prompts)])
        gate = asyncio.Semaphore(plan.max_concurrency) if plan.max_concurrency else nullcontext()
        start = time.perf_counter()

        async def one(prompt: Prompt, due: float) -> Exchange:
            await asyncio.sleep(max(0.0, start + due - time.perf_counter()))
            async with gate:
                sent = time.perf_counter()
                done = await exchange(client, target, prompt)
            done.queued = max(0.0, sent - start - due)
            on_done(done)
            return done

        times = send_times(plan.arrivals, len(prompts), random.Random(plan.seed))
        done = await asyncio.gather(*(one(prompt, due) for prompt, due in zip(prompts, times, strict=True)))
        duration = time.perf_counter() - start
    for record in done:
        if record.ok and not record.output_tokens:
            record.output_tokens = len(tokenizer.encode(record.text, add_special_tokens=False))
    return done, duration


async def _wait_until_answering(client: aiohttp.ClientSession, target: Target, prompt: Prompt, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while (answer := await exchange(client, target, prompt)).error:
        if time.monotonic() >= deadline:
            raise ServerUnreachableError(
                f"{target.url} did not answer a request within {timeout:.0f} s, last: {answer.error}",
                fix="Check the address, --model and --endpoint; --ready-check-timeout-sec sets the time, 0 skips the check.",
            )
        await asyncio.sleep(_RETRY_SECONDS)
