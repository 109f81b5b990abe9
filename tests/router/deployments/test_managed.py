"""Processes that the router starts, watches and stops, played by a script that obeys a file."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.deployments.deployments import ModelNotReadyError, RuntimeDeployments
from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.runtimes import Runtimes
from headway.router.metrics.registry import RouterMetrics
from tests.router.deployments.managed_stage import MODEL, SCRIPT, ask, folder, stage_in
from tests.router.deployments.setups import QUICK, document, until

__all__ = ["folder"]


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
