"""Several attached runtimes behind one deployment."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from headway.errors import ConfigError
from headway.router.deployments.calls import Answered
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.runtimes import Runtimes
from headway.router.metrics.registry import RouterMetrics
from tests.router.deployments.fake_runtime import fake_runtime, noul_card
from tests.router.deployments.setups import QUICK, decide, deployed, document, until


def test_a_call_that_cannot_reach_a_replica_goes_to_another() -> None:
    async def run() -> None:
        async with fake_runtime() as first, fake_runtime() as second:
            replicas = [{"endpoint": runtime.endpoint, "served_name": "judge"} for runtime in (first, second)]
            slow = replace(QUICK, poll_ready=60)
            async with deployed({"judge": {"provider": "model_runtime", "replicas": replicas}}, tempo=slow) as found:
                await first.stop()  # the router does not know yet
                for number in range(4):
                    assert isinstance(await decide(found, state=str(number)), Answered)
                assert len(second.posts) == 4

    asyncio.run(run())


def test_replicas_must_serve_the_same_model() -> None:
    async def run() -> None:
        async with fake_runtime() as first, fake_runtime(noul_card(model_sha256="c" * 64)) as second:
            replicas = [{"endpoint": runtime.endpoint, "served_name": "judge"} for runtime in (first, second)]
            async with deployed({"judge": {"provider": "model_runtime", "replicas": replicas}}, ready=False) as found:
                await until(lambda: all(worker.state.ready for worker in found.pools[0].workers))
                states = [found.pools[0].state_of(worker) for worker in found.pools[0].workers]
                assert sorted(state.state for state in states) == ["incompatible", "ready"]
                for number in range(4):
                    await decide(found, state=str(number))
                assert {len(first.posts), len(second.posts)} == {0, 4}

    asyncio.run(run())


def test_when_one_replica_cannot_be_made_none_is_left_behind() -> None:
    async def run() -> None:
        async with fake_runtime() as runtime:
            runtimes = Runtimes(RouterMetrics(), RuntimeEnvironment(), QUICK)
            replicas = [{"endpoint": runtime.endpoint}, {"endpoint": "http://user:secret@host:1"}]
            found = RuntimeDeployments(document({"judge": {"provider": "model_runtime", "replicas": replicas}}), runtimes, {})
            with pytest.raises(ConfigError, match="endpoint must be"):
                found.start(["judge"])
            assert runtimes._workers == {}
            await found.close()
            await runtimes.close()

    asyncio.run(run())
