"""System One on the router's public address, before a real worker: jevcompat and TypeSafe's client."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import typesafe_sdk
from jevcompat.runner import run as jevcompat

from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.runtimes import Runtimes
from headway.runtime.readers.decision2.family import Decision2Family
from tests.router.deployments.setups import until
from tests.router.listener.live_front import LiveFront

KEY = "secret-of-the-listener"
NAME = "acme/judge"


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hw"))
    yield path
    shutil.rmtree(path)


@pytest.mark.e2e
def test_clients_of_system_one_find_nothing_missing(folder: Path) -> None:
    (folder / "judge").mkdir()
    family = Decision2Family()
    family.write_fixture(folder / "judge", next(iter(family.fixture_variants())), 1)
    deployments = {"judge": {"provider": "model_runtime", "artifact": str(folder / "judge"), "device": "cpu", "public_name": NAME}}
    listeners = [{"name": "public", "port": 1, "systemone": {"models": [NAME]}, "api_keys": [KEY]}]

    async def work() -> None:
        live = LiveFront(None, folder / "state", listeners=listeners, **{"global": {"model_catalog": {"deployments": deployments}}})
        environment = RuntimeEnvironment(folder=folder / "run", cache=folder / "cache", threads=1, result_cache=0)
        live.services.runtimes = Runtimes(live.services.metrics, environment)
        async with live:
            await until(lambda: live.generations.current.deployments.card("judge"), 90)
            report = await asyncio.to_thread(lambda: jevcompat(live.url, key=KEY, model=NAME))
            failed = {result.id: [finding.message for finding in result.findings] for result in report.results if result.status == "fail"}
            assert (report.verdict, failed) == ("conformant", {})
            answer = await asyncio.to_thread(_asked, live.url)
            assert 0 <= answer <= 1

    asyncio.run(work())


def _asked(url: str) -> float:
    with typesafe_sdk.TypeSafeClient(api_key=KEY, base_url=url) as client:
        assert [model.name for model in client.models.list().models] == [NAME]
        found = client.system_one(state="The parcel is late.", questions={"late": typesafe_sdk.Noul(instructions="Is it late?")})
        answer = found.answers["late"]
        assert isinstance(answer, typesafe_sdk.NoulAnswer)
        return answer.noul
