"""Vectors from an OpenAI-compatible service."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.deployments.calls import EMBEDDING_ENDPOINT, Unanswered
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.deployments.runtimes import Runtimes
from headway.router.metrics.registry import RouterMetrics
from tests.router.deployments.fake_runtime import FakeRuntime, fake_runtime
from tests.router.deployments.setups import document, soon


async def embedded(body: Any) -> Any:
    return {"object": "list", "data": [{"index": i, "embedding": [float(len(text)), 1.0]} for i, text in enumerate(body["input"])]}


def deployments(runtime: FakeRuntime, **fields: Any) -> RuntimeDeployments:
    endpoint = {"base_url": f"{runtime.endpoint}/v1", "model": "e5", "api_key_env": "EMBED_KEY", **fields}
    given = document({}, embeddings={"semantic": {"endpoint": endpoint}})
    return RuntimeDeployments(given, Runtimes(RouterMetrics()), {"EMBED_KEY": "k"})


async def embed(found: RuntimeDeployments, *texts: str) -> Any:
    calls = found.open(soon()).join()
    try:
        return await calls.embed(EMBEDDING_ENDPOINT, texts)
    finally:
        calls.leave()


def test_texts_become_vectors_with_an_identity() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime:
            runtime.script["/v1/embeddings"] = embedded
            found = deployments(runtime)
            found.start(())
            answer = await embed(found, "ab", "c")
            assert answer.value == [[2.0, 1.0], [1.0, 1.0]]
            assert answer.representation == f"{runtime.endpoint}/v1#e5/layer-0/2"
            assert runtime.posts == [("/v1/embeddings", {"model": "e5", "input": ["ab", "c"]})]
            assert runtime.headers[0]["authorization"] == "Bearer k"
            calls = found.open(soon()).join()
            assert await calls.classify(EMBEDDING_ENDPOINT, ["a"]) == [Unanswered("rejected")]
            assert await calls.decide(EMBEDDING_ENDPOINT, {"type": "noul", "instructions": "?"}, "a") == Unanswered("unavailable")
            calls.leave()
            await found.close()

    asyncio.run(run())


@pytest.mark.parametrize(("status", "retries", "asked", "reason"), [(500, 2, 3, "failed"), (429, 1, 2, "overloaded"), (400, 2, 1, "rejected"), (503, 0, 1, "unavailable")])
def test_failures_are_tried_again_where_that_helps(status: int, retries: int, asked: int, reason: str) -> None:
    async def failing(_: Any) -> Any:
        return status, {}

    async def run() -> None:
        async with fake_runtime() as runtime:
            runtime.script["/v1/embeddings"] = failing
            found = deployments(runtime, max_retries=retries)
            found.start(())
            assert await embed(found, "a") == Unanswered(reason)
            assert len(runtime.posts) == asked
            await found.close()

    asyncio.run(run())


def test_a_key_that_is_not_set_is_said_before_the_start() -> None:
    endpoint = {"base_url": "http://h/v1", "model": "e5", "api_key_env": "EMBED_KEY"}
    with pytest.raises(ConfigError, match="EMBED_KEY is not set"):
        RuntimeDeployments(document({}, embeddings={"semantic": {"endpoint": endpoint}}), Runtimes(RouterMetrics()), {})
