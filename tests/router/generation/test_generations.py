"""A generation is closed when it was replaced and its last request has ended, never before."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headway.router.generation.generation import Generation
from headway.router.generation.generations import Generations, NotReadyError


class Closing:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


def generation(number: int) -> Any:
    return cast(Generation, SimpleNamespace(number=number, upstreams=Closing(), deployments=Closing()))


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_before_the_first_generation_there_is_nothing_to_use() -> None:
    generations = Generations()
    with pytest.raises(NotReadyError), generations.use():
        pass
    assert not generations.is_ready


def test_a_replaced_generation_lives_until_its_last_request_ends() -> None:
    async def scenario() -> None:
        generations = Generations()
        old, new = generation(1), generation(2)
        generations.swap(old)
        with generations.use() as seen, generations.use():
            generations.swap(new)
            await turns()
            assert seen is old
            assert old.upstreams.closed == 0
            assert generations.retired == 1
            assert generations.current is new
        await turns()
        assert (old.upstreams.closed, old.deployments.closed) == (1, 1)
        assert generations.retired == 0
        assert new.upstreams.closed == 0

    asyncio.run(scenario())


def test_an_unused_generation_is_closed_at_once_when_replaced() -> None:
    async def scenario() -> None:
        generations = Generations()
        old = generation(1)
        generations.swap(old)
        generations.swap(generation(2))
        await turns()
        assert (old.upstreams.closed, old.deployments.closed) == (1, 1)

    asyncio.run(scenario())


def test_close_closes_the_current_generation_once() -> None:
    async def scenario() -> None:
        generations = Generations()
        last = generation(1)
        generations.swap(last)
        await generations.close()
        await generations.close()
        assert last.upstreams.closed == 1
        assert not generations.is_ready

    asyncio.run(scenario())
