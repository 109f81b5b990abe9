"""A start that waits for models: what it prints, what the management address says meanwhile, and how it ends when a model does not load."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.router_process import PYTHON, RunningRouter, backend, command, free_offset, started_router, two_models
from tests.e2e.test_router_reload import by_rename
from tests.router.upstream.scripted_backend import answers
from tests.shim.environments import ROOT

RUNTIME = ROOT / "tests" / "router" / "deployments" / "scripted_srun.py"
WAITING = "Waiting for Router-managed model deployments, 0 of 1 ready: judge (/models/judge) loading"


def document(endpoint: str, artifact: str = "/models/judge") -> dict[str, Any]:
    """Urgent requests, in the judgment of a model that the router runs, go to `large`."""
    found = two_models(endpoint, endpoint)
    question = {"type": "noul", "instructions": "Is it urgent?"}
    found["routing"]["signals"]["systemone"] = [{"name": "urgent", "deployment": "judge", "question": question, "predicate": {"gte": 0.5}}]
    rules = {"operator": "AND", "conditions": [{"type": "systemone", "name": "urgent"}]}
    found["routing"]["decisions"] = [{"name": "urgent", "rules": rules, "modelRefs": [{"model": "large"}]}]
    deployment = {"provider": "model_runtime", "artifact": artifact, "public_name": "acme/judge", "device": "cpu"}
    found["global"] = {"model_catalog": {"deployments": {"judge": deployment}}}
    return found


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """The folder that tells the scripted runtime what to do."""
    folder = tmp_path / "runtime"
    folder.mkdir()
    return folder


def variables(runtime: Path) -> dict[str, str]:
    return {"VLLM_SRUN_COMMAND": f"{sys.executable} {RUNTIME} {runtime}", "VLLM_SRUN_DIR": str(runtime / "sockets")}


@pytest.fixture
def endpoint() -> Iterator[str]:
    with backend(answers()) as found:
        yield found.endpoint


def test_a_start_says_what_it_waits_for_until_it_is_ready(tmp_path: Path, runtime: Path, endpoint: str) -> None:
    (runtime / "mode").write_text("loading")
    with started_router(tmp_path / "router", document(endpoint), wait=False, **variables(runtime)) as router:
        router.until(lambda: WAITING in router.log.read_text())
        status = router.get("/startup-status")
        told = status.json()
        assert (status.status_code, told["phase"], told["ready"]) == (503, "loading_model_deployments", False)
        assert (told["pending_models"], told["ready_models"], told["total_models"]) == (["judge"], 0, 1)
        assert [(each["name"], each["state"]) for each in told["model_deployments"]] == [("judge", "loading")]
        assert (router.get("/health").status_code, router.get("/ready").status_code) == (200, 503)
        assert json.loads((router.config.parent / "router-runtime.json").read_text())["phase"] == "loading_model_deployments"
        early = router.chat("now!")
        assert early.status_code == 503
        assert router.preview("now!").status_code == 503
        assert json.loads(command(router, "status", "--json").stdout)[0]["startup"]["phase"] == "loading_model_deployments"
        (runtime / "mode").write_text("ready")
        for line in (runtime / "starts").read_text().splitlines():
            _end(json.loads(line)["pid"])
        router.until(router.is_ready)
        assert router.chat("now!").headers["x-vsr-selected-decision"] == "urgent"
        [deployment] = router.get("/api/v1/inventory/model-runtime").json()["deployments"]
        assert (deployment["name"], deployment["ready"], deployment["managed"], deployment["restarts"]) == ("judge", True, True, 1)
        assert router.metric('vsr_model_runtime_ready{deployment="judge"}') == 1
        question = {"state": "now!", "questions": {"q": {"type": "noul", "instructions": "Is it urgent?"}}}
        asked = router.client.post(f"{router.management}/api/v1/diagnostics/models/systemone", json=question)
        assert asked.json()["answers"]["q"]["noul"] == 0.5
        (runtime / "mode").write_text("loading")
        _end(json.loads((runtime / "starts").read_text().splitlines()[-1])["pid"])
        router.until(lambda: router.get("/startup-status").json()["pending_models"] == ["judge"])
        assert router.get("/ready").status_code == 200
        assert router.preview("now!").json()["signal_errors"] == {"systemone:urgent": "decision_unavailable"}
        pids = [json.loads(line)["pid"] for line in (runtime / "starts").read_text().splitlines()]
        assert router.stop() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_model_that_does_not_load_ends_the_start_with_the_reason(tmp_path: Path, runtime: Path, endpoint: str) -> None:
    (runtime / "mode").write_text("quick")
    with started_router(tmp_path / "router", document(endpoint), wait=False, **variables(runtime)) as router:
        assert router.process.wait(60) == 1
        told = router.log.read_text()
        last = told.splitlines()[-1]
        assert "judge" in last
        assert told.count(last.removeprefix("vllm-sr: ")) == 1
        assert last.removeprefix("vllm-sr: ") in (router.config.parent / ".vllm-sr" / "router.log").read_text()


def test_the_startup_timeout_ends_it(tmp_path: Path, runtime: Path, endpoint: str) -> None:
    (runtime / "mode").write_text("loading")
    with started_router(tmp_path / "router", document(endpoint), "--startup-timeout", "2", wait=False, **variables(runtime)) as router:
        assert router.process.wait(60) == 1
        assert "did not become ready within 2 s" in router.log.read_text()


def test_a_reload_with_a_model_that_does_not_load_is_rejected_while_requests_go_on(tmp_path: Path, runtime: Path, endpoint: str) -> None:
    (runtime / "mode").write_text("ready")
    with started_router(tmp_path / "router", document(endpoint), **variables(runtime)) as router:
        (runtime / "mode").write_text("quick")
        by_rename(router.config, yaml.safe_dump(document(endpoint, "/models/other")))
        router.until(lambda: router.get("/api/v1/config/hash").json()["activation_status"] == "pending" or _failed(router))
        assert router.get("/ready").status_code == 200
        router.until(lambda: _failed(router), 60)
        assert router.chat("now!").headers["x-vsr-selected-decision"] == "urgent"
        assert len([each for each in router.get("/api/v1/inventory/model-runtime").json()["deployments"] if each["ready"]]) == 1


def test_engine_mode_serves_system_one_alone_and_keeps_a_configuration_for_the_model(tmp_path: Path, runtime: Path) -> None:
    (runtime / "mode").write_text("ready")
    folder, offset = tmp_path / "elsewhere", free_offset()
    folder.mkdir()
    environment = {**os.environ, **variables(runtime), "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path), "VLLM_SR_PORT_OFFSET": str(offset)}
    kept = tmp_path / ".local" / "state" / "vllm-sr" / "engine" / "models_judge" / "config.yaml"
    with (folder / "log").open("wb") as out:
        process = subprocess.Popen([*PYTHON, "serve", "/models/judge", "--engine"], cwd=folder, env=environment, stdout=out, stderr=out)
    router = RunningRouter(process, kept, offset, folder / "log")
    try:
        router.until(router.is_ready)
        question = {"model": "judge", "state": "now!", "questions": {"q": {"type": "noul", "instructions": "Is it urgent?"}}}
        assert router.client.post(f"{router.url}/v1/systemone", json=question).json()["answers"]["q"]["noul"] == 0.5
        assert router.client.get(f"{router.url}/v1/systemone/models").status_code == 200
        assert router.chat("hello").status_code == 404
        assert router.get("/api/v1/instance").json() == {"observed_mode": "engine", "active_deployment": "primary", "model": "/models/judge"}
        assert kept.is_file()
    finally:
        assert router.stop() == 0


def _failed(router: RunningRouter) -> bool:
    return bool(router.get("/api/v1/config/hash").json()["activation_status"] == "failed")


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
