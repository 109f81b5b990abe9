"""Processes that the router starts, over reloads and under load: kept, replaced, waited for, no question lost."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from headway.router.deployments.calls import Unanswered
from headway.router.deployments.deployments import ModelNotReadyError
from tests.router.deployments.managed_stage import MODEL, alive, ask, folder, stage_in
from tests.router.deployments.setups import until

__all__ = ["folder"]


def test_a_reload_keeps_the_workers_that_did_not_change(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder) as stage:
            both = {"judge": MODEL, "other": {**MODEL, "artifact": "/models/other"}}
            first = stage.deployments(both)
            await first.wait()
            second = stage.deployments({"judge": MODEL, "other": {**MODEL, "artifact": "/models/third"}})
            await second.wait()
            assert len(stage.starts) == 3
            await first.close()
            assert (await ask(second)).value["noul"] == 0.5
            assert (await ask(second, "other")).value["noul"] == 0.5
            stage.mode("failed")
            third = stage.deployments({"judge": {**MODEL, "max_num_seqs": 2}})
            with pytest.raises(ModelNotReadyError):
                await third.wait()
            await third.close()
            assert (await ask(second)).value["noul"] == 0.5  # the old generation never noticed
            kept = [start for start in stage.starts[:2] if "/judge-" in start["words"][2]] + [stage.starts[2]]
            assert all(alive(start["pid"]) for start in kept)
            assert not any(alive(start["pid"]) for start in stage.starts if start not in kept)

    asyncio.run(run())


def test_replicas_share_the_work_and_one_may_die(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder, first_backoff=5) as stage:
            found = stage.deployments({"judge": {"provider": "model_runtime", "artifact": "/models/judge", "replicas": [{"device": "cpu"}] * 2}})
            await found.wait()
            [pool] = found.pools
            for _ in range(4):
                await ask(found)
            counts = [stage.metrics.value("vsr_model_runtime_replica_requests", "judge", worker.id, "ok") for worker in pool.workers]
            assert counts == [2, 2]
            os.killpg(stage.starts[0]["pid"], signal.SIGKILL)
            for _ in range(6):  # none is lost, whether the death is known already or not
                assert (await ask(found)).value["noul"] == 0.5
            await until(lambda: pool.state.state == "degraded")
            os.killpg(stage.starts[1]["pid"], signal.SIGKILL)
            await until(lambda: not pool.ready)
            assert (await ask(found)).reason == "unavailable"

    asyncio.run(run())


def test_all_replicas_die_at_once_and_both_come_back(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder, first_backoff=0.3) as stage:
            found = stage.deployments({"judge": {"provider": "model_runtime", "artifact": "/models/judge", "replicas": [{"device": "cpu"}] * 2}})
            await found.wait()
            [pool] = found.pools
            for start in stage.starts:
                os.killpg(start["pid"], signal.SIGKILL)
            await until(lambda: not pool.ready)
            assert [(await ask(found)).reason for _ in range(3)] == ["unavailable"] * 3
            assert stage.metrics.value("vsr_model_runtime_ready", "judge") == 0
            await until(lambda: pool.ready)  # the first that is back answers for both
            assert (await ask(found)).value["noul"] == 0.5
            await until(lambda: pool.state.state == "ready")
            assert [worker.restarts for worker in pool.workers] == [1, 1]

    asyncio.run(run())


def test_what_metrics_tell_during_and_after_a_reload(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder) as stage:
            first = stage.deployments()
            await first.wait()
            [worker] = first.pools[0].workers
            stage.mode("loading")
            second = stage.deployments({"judge": {**MODEL, "max_num_seqs": 9}})
            await until(lambda: second.pools[0].state.state == "loading")
            assert stage.metrics.value("vsr_model_runtime_ready", "judge") == 1  # the old one answers
            await second.close()
            assert stage.metrics.value("vsr_model_runtime_ready", "judge") == 1
            await first.close()
            assert b'deployment="judge"' not in b"".join(line for line in stage.metrics.text().splitlines() if b"_ready{" in line)
            assert worker.state.state == "stopped"

    asyncio.run(run())


def test_a_configuration_that_comes_back_waits_for_its_old_worker_to_end(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder, "deaf", grace=0.3) as stage:
            first = stage.deployments()
            await first.wait()
            closing = asyncio.create_task(first.close())
            await asyncio.sleep(0.05)
            stage.mode("ready")
            again = stage.deployments()
            await again.wait()
            await closing
            assert (await ask(again)).value["noul"] == 0.5
            assert len(stage.starts) == 2
            assert stage.metrics.value("vsr_model_runtime_replica_ready", "judge", again.pools[0].workers[0].id) == 1

    asyncio.run(run())


@pytest.mark.long
def test_replicas_die_in_turn_under_load_and_no_question_is_lost(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder) as stage:
            replicas = [{"device": "cpu"}] * 2
            found = stage.deployments({"judge": {"provider": "model_runtime", "artifact": "/models/judge", "replicas": replicas}})
            await found.wait()
            [pool] = found.pools
            descriptors = len(os.listdir("/proc/self/fd"))
            answers: list[Any] = []
            stop = asyncio.Event()

            async def client() -> None:
                while not stop.is_set():
                    answers.append(await ask(found))

            clients = [asyncio.create_task(client()) for _ in range(8)]
            for turn in range(8):
                pid = pool.workers[turn % 2].pid
                assert pid is not None
                os.killpg(pid, signal.SIGKILL)
                await until(lambda: pool.state.state != "ready")
                await until(lambda: pool.state.state == "ready")
                await asyncio.sleep(0.1)
            stop.set()
            await asyncio.gather(*clients)
            assert len(answers) > 500
            assert [answer for answer in answers if isinstance(answer, Unanswered)] == []
            assert sum(worker.restarts for worker in pool.workers) == 8
            await until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors + 16)  # connections that are kept alive

    asyncio.run(run())


@pytest.mark.long
def test_reloads_under_load_lose_no_question(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder) as stage:
            current = stage.deployments()
            await current.wait()
            lost: list[Any] = []
            asked = 0
            uses: dict[int, int] = {}
            stop = asyncio.Event()

            async def client() -> None:
                nonlocal asked
                while not stop.is_set():
                    mine = current
                    uses[id(mine)] = uses.get(id(mine), 0) + 1
                    answer = await ask(mine)
                    uses[id(mine)] -= 1
                    asked += 1
                    if isinstance(answer, Unanswered):
                        lost.append(answer)

            clients = [asyncio.create_task(client()) for _ in range(4)]
            for turn in range(12):
                stage.mode("failed" if turn % 4 == 3 else "ready")
                offered = stage.deployments({"judge": {**MODEL, "max_num_seqs": 2 + turn % 5}})
                try:
                    await offered.wait()
                except ModelNotReadyError:
                    await offered.close()
                    continue
                before, current = current, offered
                await until(lambda before=before: not uses.get(id(before)))  # type: ignore[misc]
                await before.close()
            stop.set()
            await asyncio.gather(*clients)
            assert lost == []
            assert asked > 200
            await current.close()
            assert list(stage.runtimes_folder.iterdir()) == []

    asyncio.run(run())
