"""Processes that the router starts, watches and stops, played by a script that obeys a file."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.deployments.calls import Unanswered
from headway.router.deployments.deployments import ModelNotReadyError, RuntimeDeployments
from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.runtimes import Runtimes
from headway.router.deployments.tempo import Tempo
from headway.router.metrics.registry import RouterMetrics
from tests.router.deployments.setups import NOUL, QUICK, document, soon, until

SCRIPT = Path(__file__).parent / "scripted_srun.py"
MODEL = {"provider": "model_runtime", "artifact": "/models/judge", "device": "cpu"}


class Stage:
    """One folder of the script, and the runtimes that use it."""

    def __init__(self, folder: Path, tempo: Tempo) -> None:
        self.folder = folder
        self.runtimes_folder = folder / "run"
        environment = RuntimeEnvironment(command=(sys.executable, str(SCRIPT), str(folder)), folder=self.runtimes_folder, threads=3, result_cache=0)
        self.metrics = RouterMetrics()
        self.runtimes = Runtimes(self.metrics, environment, tempo)

    def mode(self, word: str) -> None:
        (self.folder / "mode").write_text(word)

    @property
    def starts(self) -> list[dict[str, Any]]:
        path = self.folder / "starts"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def deployments(self, given: dict[str, Any] | None = None, **catalog: Any) -> RuntimeDeployments:
        given = given or {"judge": MODEL}
        found = RuntimeDeployments(document(given, **catalog), self.runtimes, {})
        found.start(given.keys())
        return found


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hw"))  # short: sockets lie in it
    yield path
    shutil.rmtree(path)


@asynccontextmanager
async def stage_in(folder: Path, mode: str = "ready", **tempo: Any) -> AsyncIterator[Stage]:
    stage = Stage(folder, replace(QUICK, **tempo))
    stage.mode(mode)
    try:
        yield stage
    finally:
        await stage.runtimes.close()
        for start in stage.starts:
            assert not alive(start["pid"])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def ask(found: RuntimeDeployments, name: str = "judge") -> Any:
    participant = found.open(soon()).join()
    try:
        return await participant.decide(name, NOUL, "text")
    finally:
        participant.leave()


def test_a_worker_is_started_as_it_should_be_and_answers(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder) as stage:
            found = stage.deployments({"judge": {**MODEL, "max_num_seqs": 4, "max_num_batched_tokens": 512}})
            reports: list[tuple[str, Any]] = []
            await found.wait(lambda message, states: reports.append((message, states)))
            assert (await ask(found)).value["noul"] == 0.5
            [worker] = found.pools[0].workers
            [start] = stage.starts
            name = f"judge-{worker.id}"
            run = stage.runtimes_folder
            assert start["words"] == [
                "serve", "--models", f"{run}/{name}.models.json", "--uds", f"{run}/{name}.sock", "--max-request-bytes", "67108864",
                "--max-bundle-tasks", "1024", "--threads", "3", "--max-batch-tokens", "512",
            ]  # fmt: skip
            assert json.loads((run / f"{name}.models.json").read_text()) == {
                "models": [{"model": "/models/judge", "name": "judge", "device": "cpu", "max_num_seqs": 4}]
            }
            assert stat.S_IMODE(run.stat().st_mode) == 0o700
            assert stat.S_IMODE((run / f"{name}.models.json").stat().st_mode) == 0o600
            assert reports[0][0] == "Waiting for Router-managed model deployments, 0 of 1 ready: judge (/models/judge) starting"
            assert reports[-1][1][0] | {"reason": ""} == {
                "name": "judge", "artifact": "/models/judge", "managed": True, "state": "ready", "ready": True, "reason": "",
            }  # fmt: skip
            assert stage.metrics.value("vsr_model_runtime_ready", "judge") == 1
            assert stage.metrics.value("vsr_model_runtime_replica_ready", "judge", worker.id) == 1
            await found.close()
            assert list(run.iterdir()) == []

    asyncio.run(run())


def test_a_killed_worker_comes_back_and_meanwhile_questions_fail_at_once(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder, first_backoff=0.3) as stage:
            found = stage.deployments()
            await found.wait()
            os.killpg(stage.starts[0]["pid"], signal.SIGKILL)
            await until(lambda: not found.pools[0].ready)
            began = asyncio.get_running_loop().time()
            assert (await ask(found)).reason == "unavailable"
            assert asyncio.get_running_loop().time() - began < 0.25
            await until(lambda: found.pools[0].ready)
            assert (await ask(found)).value["noul"] == 0.5
            assert found.pools[0].workers[0].restarts == 1
            assert stage.metrics.value("vsr_model_runtime_restarts", "judge") == 1
            assert len(stage.starts) == 2

    asyncio.run(run())


def test_a_model_that_fails_three_times_stops_the_start(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder, "failed") as stage:
            found = stage.deployments()
            with pytest.raises(ModelNotReadyError) as caught:
                await found.wait()
            expected = "model runtime is not ready: model judge failed to load: a file hash does not match (every model failed to load 3 times in a row)"
            assert str(caught.value) == f"model deployment judge: {expected}"
            assert len(stage.starts) == 3
            stage.mode("ready")  # whatever was wrong is repaired: the worker goes on trying
            await until(lambda: found.pools[0].ready)
            assert found.pools[0].workers[0].failure is None

    asyncio.run(run())


def test_quick_exits_stop_the_start_and_the_last_line_says_why(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder, "quick") as stage:
            with pytest.raises(ModelNotReadyError, match="ended 3 times before the model was ready: ended with exit code 3: cannot open the device"):
                await stage.deployments().wait()
            assert len(stage.starts) == 3

    asyncio.run(run())


def test_quick_exits_far_apart_do_not_stop_the_start(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder, "quick", quick_window=0.0) as stage:
            found = stage.deployments()
            await until(lambda: len(stage.starts) >= 4)
            assert found.pools[0].workers[0].failure is None

    asyncio.run(run())


def test_a_command_that_cannot_be_run_fails_at_once(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder) as stage:
            stage.runtimes = Runtimes(stage.metrics, replace(stage.runtimes.environment, command=("/nowhere/vllm-srun",)), QUICK)
            found = stage.deployments()
            with pytest.raises(ModelNotReadyError, match=r"/nowhere/vllm-srun cannot be run: No such file or directory"):
                await found.wait()
            await found.close()

    asyncio.run(run())


def test_the_wait_ends(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder, "loading") as stage:
            stage.runtimes = Runtimes(stage.metrics, replace(stage.runtimes.environment, ready_timeout=0.5), QUICK)
            found = stage.deployments()
            with pytest.raises(ModelNotReadyError, match=r"judge did not become ready within 500ms: it is loading \(resolving the model\)"):
                await found.wait()
            await found.close()

    asyncio.run(run())


def test_back_off_doubles_up_to_its_end(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with stage_in(folder, "quick", first_backoff=0.01, longest_backoff=0.04) as stage:
            stage.deployments()
            await until(lambda: len(stage.starts) >= 6)

    with caplog.at_level(logging.WARNING, "headway"):
        asyncio.run(run())
    waits = [record.args[2] for record in caplog.records if "starts again" in record.message and isinstance(record.args, tuple)]
    assert waits[:5] == [0.01, 0.02, 0.04, 0.04, 0.04]


def test_a_long_run_starts_the_back_off_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with stage_in(folder, "quick", first_backoff=0.01, longest_backoff=0.5, good_run=-1) as stage:
            stage.deployments()
            await until(lambda: len(stage.starts) >= 4)

    with caplog.at_level(logging.WARNING, "headway"):
        asyncio.run(run())
    waits = [record.args[2] for record in caplog.records if "starts again" in record.message and isinstance(record.args, tuple)]
    assert set(waits) == {0.01}


def test_a_worker_that_ignores_sigterm_is_killed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with stage_in(folder, "deaf", grace=0.1) as stage:
            found = stage.deployments()
            await found.wait()
            await found.close()

    with caplog.at_level(logging.WARNING, "headway"):
        asyncio.run(run())
    assert "runtime_process_killed" in caplog.text


def test_a_stale_socket_is_removed_and_anything_else_is_refused(folder: Path) -> None:
    async def run() -> None:
        async with stage_in(folder) as stage:
            found = stage.deployments()
            path = stage.runtimes_folder / f"judge-{found.pools[0].workers[0].id}.sock"
            await found.wait()
            await found.close()
            left = socket.socket(socket.AF_UNIX)
            left.bind(str(path))
            left.close()
            found = stage.deployments()
            await found.wait()
            assert (await ask(found)).value["noul"] == 0.5
            await found.close()
            with socket.socket(socket.AF_UNIX) as listening:  # another router's worker
                listening.bind(str(path))
                listening.listen()
                found = stage.deployments()
                with pytest.raises(ModelNotReadyError, match="another worker listens on"):
                    await found.wait()
                await found.close()
                assert path.is_socket()
            path.unlink(missing_ok=True)
            path.write_text("a letter")
            found = stage.deployments()
            with pytest.raises(ModelNotReadyError, match="in the way of a worker's socket"):
                await found.wait()
            await found.close()
            assert path.read_text() == "a letter"

    asyncio.run(run())


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


def test_a_folder_for_sockets_must_be_ours(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")

    async def run(folder: Path) -> None:
        runtimes = Runtimes(RouterMetrics(), RuntimeEnvironment(folder=folder), QUICK)
        RuntimeDeployments(document({"judge": MODEL}), runtimes, {}).start(["judge"])

    for name in ("link", "file"):
        with pytest.raises(ConfigError, match="VLLM_SRUN_DIR"):
            asyncio.run(run(tmp_path / name))


def test_a_long_folder_is_replaced_by_a_short_one(tmp_path: Path) -> None:
    async def run() -> None:
        long = tmp_path / ("x" * 120)
        (tmp_path / "mode").write_text("ready")
        environment = RuntimeEnvironment(command=(sys.executable, str(SCRIPT), str(tmp_path)), folder=long)
        runtimes = Runtimes(RouterMetrics(), environment, QUICK)
        found = RuntimeDeployments(document({"judge": MODEL}), runtimes, {})
        found.start(["judge"])
        await found.wait()
        assert (await ask(found)).value["noul"] == 0.5
        [used] = runtimes._folders
        assert len(str(used)) < 60
        await found.close()
        await runtimes.close()
        assert not used.exists()

    asyncio.run(run())


def test_what_a_worker_prints_is_logged_line_by_line(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with stage_in(folder) as stage:
            await stage.deployments().wait()

    with caplog.at_level(logging.INFO, "headway"):
        asyncio.run(run())
    assert any("runtime_log judge" in record.message and "serving judge" in record.message for record in caplog.records)


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
