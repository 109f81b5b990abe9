"""Real `vllm-srun` workers, started by the router on tiny packages: what they say and what the router makes of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headway.router.deployments.calls import Answered, Unanswered
from headway.router.deployments.deployments import ModelNotReadyError, RuntimeDeployments
from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.runtimes import Runtimes
from headway.router.metrics.registry import RouterMetrics
from headway.runtime.readers.decision2.family import Decision2Family
from headway.runtime.tasks.family import TaskHeads
from tests.router.deployments.setups import QUICK, document, soon, until
from tests.runtime.worker_process import worker_process

TEXT = "The parcel never arrived and nobody answers."
NOUL = {"type": "noul", "instructions": "Is it urgent?"}
CHOICE = {"type": "choice", "instructions": "What is it?", "choices": [{"key": "refund", "description": "money back"}, {"key": "praise"}]}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hw"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def packages(folder: Path) -> dict[str, str]:
    for name, family in (("judge", Decision2Family()), ("domain", TaskHeads())):
        (folder / name).mkdir()
        family.write_fixture(folder / name, next(iter(family.fixture_variants())), 1)
    return {"judge": str(folder / "judge"), "domain": str(folder / "domain")}


def _runtimes(folder: Path) -> Runtimes:
    environment = RuntimeEnvironment(folder=folder / "run", cache=folder / "cache", threads=1, result_cache=16)
    return Runtimes(RouterMetrics(), environment, replace(QUICK, poll_loading=0.1))


def _deployments(packages: dict[str, str], runtimes: Runtimes, **catalog: object) -> RuntimeDeployments:
    given = {name: {"provider": "model_runtime", "artifact": path, "device": "cpu"} for name, path in packages.items()}
    found = RuntimeDeployments(document(given, **catalog), runtimes, {})
    found.start(packages)
    return found


@pytest.mark.long
@pytest.mark.e2e
def test_questions_labels_a_kill_and_what_does_not_fit(folder: Path, packages: dict[str, str]) -> None:
    async def run() -> None:
        runtimes = _runtimes(folder)
        found = _deployments(packages, runtimes)
        messages: list[str] = []
        try:
            await found.wait(lambda message, states: messages.append(message))
            assert messages[0].startswith("Waiting for Router-managed model deployments, 0 of 2 ready: ")
            assert messages[-1] == "All model deployments are ready"
            stage = found.open(soon(30))
            one, two, three = stage.join(), stage.join(), stage.join()
            noul, choice, [label] = await asyncio.gather(
                one.decide("judge", NOUL, TEXT, full=True), two.decide("judge", CHOICE, TEXT, full=True), three.classify("domain", [TEXT])
            )
            for participant in (one, two, three):
                participant.leave()
            assert isinstance(noul, Answered)
            assert 0 <= noul.value["noul"] <= 1
            assert isinstance(choice, Answered)
            assert choice.value["choice"] in ("refund", "praise")
            assert isinstance(label, Answered)
            assert sum(label.value.scores.values()) == pytest.approx(1, abs=1e-4)
            metrics = runtimes.metrics
            assert metrics.value("vsr_model_runtime_requests", "judge", "ok") == 1
            assert metrics.value("vsr_model_runtime_server_seconds", "judge", "decisions", "forward") == 1
            # the process of one model is killed: the other goes on, it comes back
            [pid] = [worker.pid for pool in found.pools if pool.name == "judge" for worker in pool.workers]
            assert pid is not None
            os.killpg(pid, signal.SIGKILL)
            calls = found.open(soon(30)).join()
            await until(lambda: not found.callers["judge"].pool.ready)
            assert await calls.decide("judge", NOUL, "new text") == Unanswered("unavailable")
            [still] = await calls.classify("domain", ["new text"])
            assert isinstance(still, Answered)
            calls.leave()
            await until(lambda: found.callers["judge"].pool.ready, 60)
            calls = found.open(soon(30)).join()  # its time begins now, however long the process took to come back
            assert isinstance(await calls.decide("judge", NOUL, "new text"), Answered)
            calls.leave()
            # a reload with a binding that the model does not fit is refused; the workers are the same
            wrong = _deployments(packages, runtimes, bindings={"pii_classifier": {"deployment": "domain", "contract": "token_spans.v1"}})
            with pytest.raises(ModelNotReadyError, match="a binding does not match the model: pii_classifier needs a head of kind token"):
                await wrong.wait()
            await wrong.close()
            assert found.callers["domain"].pool.ready
        finally:
            await found.close()
            await runtimes.close()

    asyncio.run(run())


@pytest.mark.long
@pytest.mark.e2e
def test_a_package_that_no_family_knows_ends_the_wait_with_its_reason(folder: Path) -> None:
    (folder / "odd").mkdir()
    (folder / "odd" / "config.json").write_text("{}")

    async def run() -> None:
        runtimes = _runtimes(folder)
        found = _deployments({"odd": str(folder / "odd")}, runtimes)
        try:
            with pytest.raises(ModelNotReadyError) as caught:
                await found.wait()
            assert "model runtime is not ready: model odd failed to load: " in str(caught.value)
            assert "every model failed to load 3 times in a row" in str(caught.value)
            assert "no family recognizes the package" in str(caught.value)
        finally:
            await found.close()
            await runtimes.close()

    asyncio.run(run())


@pytest.mark.long
@pytest.mark.e2e
def test_two_routers_on_one_runtime_that_is_killed_and_comes_back(folder: Path, packages: dict[str, str]) -> None:
    address = str(folder / "shared.sock")
    words = (packages["judge"], "--served-model-name", "judge", "--uds", address, "--threads", "1")

    async def ask(found: RuntimeDeployments, state: str) -> object:
        calls = found.open(soon(30)).join()
        try:
            return await calls.decide("judge", NOUL, state)
        finally:
            calls.leave()

    async def run() -> None:
        routers = [_runtimes(folder) for _ in range(2)]
        given = document({"judge": {"provider": "model_runtime", "endpoint": f"unix://{address}"}})
        both = [RuntimeDeployments(given, runtimes, {}) for runtimes in routers]
        try:
            for found in both:
                found.start(["judge"])
                await found.wait()  # nobody waits for an attached runtime
                assert await ask(found, "early") == Unanswered("unavailable")
            for turn in ("first", "second"):
                with worker_process(folder, *words) as worker:
                    await until(lambda: all(found.pools[0].ready for found in both), 60)
                    answers = await asyncio.gather(*(ask(found, f"{turn} {number}") for number in range(8) for found in both))
                    assert all(isinstance(answer, Answered) for answer in answers)
                    worker.end(signal.SIGKILL)
                    await until(lambda: not any(found.pools[0].ready for found in both))
                    assert [await ask(found, turn) for found in both] == [Unanswered("unavailable")] * 2
                    assert Path(address).is_socket()  # left behind; the next one takes its place
        finally:
            for found, runtimes in zip(both, routers, strict=True):
                await found.close()
                await runtimes.close()

    asyncio.run(run())
